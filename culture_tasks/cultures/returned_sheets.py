"""Reads returned sheets: files that pages saved, and CSV files as spreadsheets leave them.

Every row that a file holds becomes one row here, with what is wrong with it, if anything is. The project keeps a copy
of each file.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.culture_forms import Entry, SheetRow, State, Step
from culture_tasks.cultures.cells import read_value, unguarded
from culture_tasks.cultures.labels import Labels, read_labels
from culture_tasks.cultures.project import Project, problems_with
from culture_tasks.cultures.sheet_files import CHECK, DONE, IMAGE, ROW, SHEET, SKIP
from culture_tasks.cultures.sheets import SentRow, Sheet, check_of, normal, read_sheets, texts_of
from culture_tasks.errors import DataError, nearest

_SAVE = "In the spreadsheet, save it as CSV UTF-8"
# A date as a spreadsheet writes it: 3-Apr, Apr-3, 03.04.2026, 2026-04-03, 3/4/26.
_DATE = re.compile(r"\d{1,2}[-. ][A-Za-zÀ-ÿ]{3,4}\.?|[A-Za-zÀ-ÿ]{3,4}\.?[- ]\d{1,2}|\d{1,4}([-./])\d{1,2}\1\d{1,4}")
# What a spreadsheet makes a date of: two or three numbers.
_NUMBERS = re.compile(r"\d{1,4}[-./]\d{1,4}([-./]\d{1,4})?")
# What says that a row is skipped, or right, and nothing more.
_MARKS = ("x", "yes", "true", "1", "✓", "✗")


@dataclass
class ReturnedRow:
    """A row of a file that came back."""

    file: str
    place: str = ""  # in the file; empty for a file that can't be read
    content: str = ""
    sheet: Sheet | None = None  # None where no sheet has it
    sent_row: SentRow | None = None
    values: dict[str, Any] = field(default_factory=dict)
    skipped: str | None = None  # why; None where it wasn't
    empty: bool = False
    problem: str = ""  # why it can't be used; empty where it can

    @property
    def key(self) -> tuple[str, str, str]:
        """Step, row and person; empty where no sheet has it."""
        return (
            (self.sent_row.step, self.sent_row.row, self.sheet.person) if self.sent_row and self.sheet else ("", "", "")
        )

    @property
    def entry(self) -> Entry:
        """The entry that it makes."""
        step, row, person = self.key
        return Entry(step=step, row=row, person=person, values=self.values, skipped=self.skipped)


_Fill = Callable[[ReturnedRow, SentRow, Step], None]
"""Puts what a file holds into a row; raises DataError where it can't be used."""


class SheetReader:
    """Reads files of a project's sheets.

    Attributes:
        notes: What was read differently from the file, by file.
    """

    def __init__(self, project: Project, data_folder: Path | None) -> None:
        self._project, self._data_folder = project, data_folder
        self._sheets = {sheet.name: sheet for sheet in read_sheets(project)}
        self._labels: Labels = read_labels(project.folder, project.config.language)
        self._rows: dict[str, dict[str, SheetRow]] = {}
        self.notes: list[tuple[str, str]] = []

    def read(self, path: Path) -> Iterator[ReturnedRow]:
        """Yields every row of a file; one without a row where it can't be read."""
        try:
            yield from self._rows_of(str(path), self._kept(path))
        except DataError as error:
            yield ReturnedRow(str(path), problem=str(error))

    def _kept(self, path: Path) -> bytes:
        """Returns the content of a file, of which a copy is kept in the project."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"can't be read ({error.strerror}). Name the files that came back.") from None
        suffix = path.suffix.lower() if path.suffix.lower() in (".csv", ".json") else ".other"
        copy = self._project.folder / "collected" / f"{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
        copy.parent.mkdir(exist_ok=True)
        if not copy.exists():
            unfinished = copy.with_suffix(".part")
            unfinished.write_bytes(content)
            unfinished.replace(copy)
        return content

    def _rows_of(self, file: str, content: bytes) -> Iterator[ReturnedRow]:
        text = self._text(file, content)
        start = text.lstrip()[:200].lower()
        if not start:
            raise DataError("the file is empty. Ask for it again.")
        if start.startswith(("<!doctype", "<html")):
            raise DataError(
                "a page, which holds no answers: they are in the browser in which it was filled in. Open the page "
                "there, save the answers, and send the saved file."
            )
        is_json = re.match(r'\{|\[\s*[\[{"\]]', start)  # the header of a sheet begins with [sheet]
        yield from self._json(file, text) if is_json else self._csv(file, text)

    def _text(self, file: str, content: bytes) -> str:
        if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            raise DataError(f"a spreadsheet or an archive. Expected CSV or JSON. {_SAVE}, or unpack the archive.")
        if content.startswith(b"%PDF"):
            raise DataError(f"a PDF file. Expected CSV or JSON. {_SAVE}.")
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.notes.append((file, "encoded in UTF-16: read as that"))
            encoding = "utf-16"
        else:
            encoding = "utf-8-sig"
        try:
            return content.decode(encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"not UTF-8 at byte {error.start}, so letters are lost. {_SAVE}, from the sheet as it was sent."
            ) from None

    def _row(self, returned: ReturnedRow, sheet: str, row: str, fill: _Fill) -> ReturnedRow:
        """Returns a row with its sheet and what ``fill`` puts into it, or with what is wrong with it."""
        try:
            returned.sheet = self._sheets.get(sheet)
            if returned.sheet is None:
                raise DataError(
                    f"no sheet {sheet!r:.60} of this project.{nearest(sheet, self._sheets)} Expected one that "
                    "`culture-tasks culture sheets` wrote: is the file of another project?"
                )
            returned.sent_row = returned.sheet.rows.get(row)
            if returned.sent_row is None:
                hint = nearest(row, returned.sheet.rows) or " Is the file of another project?"
                raise DataError(f"no row {row!r:.60} on the sheet {sheet}.{hint}")
            step = self._project.steps.get(returned.sheet.step)
            if step is None:
                raise DataError(
                    f"no step {returned.sheet.step!r} in this project any more. Was 'way' changed in culture.toml?"
                )
            fill(returned, returned.sent_row, step)
            if returned.skipped is not None and returned.values:
                raise DataError("both skipped and filled in. Expected one of the two: ask the person.")
            is_filled = returned.skipped is None and not returned.empty
            if is_filled and (problems := problems_with(step.columns, returned.values)):
                raise DataError(f"{'; '.join(problems)}.")
        except DataError as error:
            returned.problem = str(error)
        return returned

    # Files that a page saved

    def _json(self, file: str, text: str) -> Iterator[ReturnedRow]:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise DataError("JSON that is cut short or changed. Save the answers on the page again.") from None
        rows = content.get("rows") if isinstance(content, dict) else None
        if not isinstance(rows, dict) or not isinstance(content.get("sheet"), str):
            raise DataError("JSON of another kind. Expected a file that the page of a sheet saved.")
        for name, row in rows.items():
            returned = ReturnedRow(file, f"row {name}", json.dumps(row, ensure_ascii=False))
            yield self._row(returned, content["sheet"], name, partial(self._from_page, row))

    def _from_page(self, content: Any, returned: ReturnedRow, _sent_row: SentRow, _step: Step) -> None:
        values = content.get("values", {}) if isinstance(content, dict) else None
        skipped = content.get("skipped") if isinstance(content, dict) else None
        if not isinstance(values, dict) or not isinstance(skipped, str | None):
            raise DataError("not laid out as a page saves it. Save the answers on the page again.")
        returned.values = {key: _normal(value) for key, value in values.items() if value not in (None, "", [])}
        returned.skipped = None if skipped is None else normal(skipped)
        returned.empty = not returned.values and skipped is None

    # Files that a spreadsheet saved

    def _csv(self, file: str, text: str) -> Iterator[ReturnedRow]:
        lines = text.removeprefix("\ufeff").split("\n", 1)
        if re.fullmatch(r"sep=.\r?", lines[0]):  # a line that only Excel writes and reads
            text = lines[-1]
        delimiter = max(",;\t", key=lambda mark: _header(text, mark).count(ROW) + len(_header(text, mark)) / 1000)
        if delimiter != ",":
            self.notes.append(
                (file, f"columns separated by {'semicolons' if delimiter == ';' else 'tabs'}: read as they are")
            )
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header: list[str] = []
        number = 0
        try:
            for number, cells in enumerate(reader, start=1):
                if not header:
                    header = self._checked_header(file, cells)
                elif any(map(str.strip, cells)):
                    line = dict(zip(header, cells, strict=False))
                    returned = ReturnedRow(file, f"row {number}", json.dumps(cells, ensure_ascii=False))
                    names = line.get(SHEET, "").strip(), line.get(ROW, "").strip()
                    returned = self._row(returned, *names, partial(self._from_cells, line))
                    if len(cells) < len(header) or any(cell.strip() for cell in cells[len(header) :]):
                        returned.problem = (
                            f"{len(cells)} cells, while the header has {len(header)}. Put cells that hold the "
                            "separator into quotes, and leave none out."
                        )
                    yield returned
        except csv.Error as error:
            raise DataError(
                f"row {number + 1}: not CSV from here on ({error}). Correct the quotes; what is above was read."
            ) from None

    def _checked_header(self, file: str, cells: Sequence[str]) -> list[str]:
        header = [_key(cell) for cell in cells]
        for name in (SHEET, ROW, CHECK):
            if name not in header:
                raise DataError(
                    f"no column {name}. Found {', '.join(cells)[:200]!r}. Expected the columns of the sheet as it "
                    "was sent: copy the column back from there."
                )
        if twice := [name for name, times in Counter(filter(None, header)).items() if times > 1]:
            raise DataError(f"several columns {twice[0]}. Remove the one that isn't of the sheet.")
        columns = {column.name for step in self._project.steps.values() for column in step.columns}
        names = {*columns, SHEET, ROW, CHECK, IMAGE, DONE, SKIP}
        if further := [name for name in header if name and name not in names and not re.fullmatch(r"\[\d+\]", name)]:
            self.notes.append((file, f"columns that no sheet has aren't read: {', '.join(further)[:200]}"))
        return header

    def _from_cells(self, line: Mapping[str, str], returned: ReturnedRow, sent_row: SentRow, step: Step) -> None:
        self._check_facts(line, returned, sent_row, step)
        values = {}
        for column in step.columns:
            text = normal(unguarded(line.get(column.name, "")))
            value = read_value(column, text, self._labels_by_step[step.name])
            if value != sent_row.values.get(column.name) and column.kind != "number" and _DATE.fullmatch(text):
                place = f"{returned.place}, column {column.name!r}"
                self.notes.append((returned.file, f"{place}: {text!r} may be a date that a spreadsheet made. Check it"))
            if value is not None:
                values[column.name] = value
        is_as_sent = values == {name: _normal(value) for name, value in sent_row.values.items()}
        skip, done = (normal(line.get(name, "")) for name in (SKIP, DONE))
        if skip and skip.casefold() not in ("no", "false", "0", self._labels("No").casefold()):
            marks = (*_MARKS, self._labels("Yes").casefold())
            returned.skipped = "" if skip.casefold() in marks else skip
        elif not done and is_as_sent:
            returned.empty = True
        returned.values = {} if is_as_sent and (returned.empty or returned.skipped is not None) else values

    @cached_property
    def _state(self) -> State:
        return self._project.state(self._data_folder, with_images=False)

    @cached_property
    def _labels_by_step(self) -> Mapping[str, Labels]:
        steps = self._project.steps.items()
        return {name: replace(self._labels, overrides=step.labels(self._state)) for name, step in steps}

    def _check_facts(self, line: Mapping[str, str], returned: ReturnedRow, row: SentRow, step: Step) -> None:
        """Raises DataError where the columns that nobody fills in aren't as they were sent."""
        name = line[ROW].strip()
        if line.get(CHECK, "").strip() != row.check:
            raise DataError(
                f"{ROW} and {CHECK} don't belong together: one column was sorted by itself. Sort all of them together, "
                "as they were."
            )
        facts = {key: unguarded(text) for key, text in line.items() if key == IMAGE or re.fullmatch(r"\[\d+\]", key)}
        if check_of(name, facts.values()) == row.check:
            return
        if not facts:
            self.notes.append((returned.file, "the columns of shown texts are missing, so they weren't compared"))
            return
        current = self._current_rows(step).get(row.row)
        changes = []
        if current is not None and check_of(name, texts_of(current)) == row.check:
            values = [facts[key] for key in sorted(facts, key=lambda key: (len(key), key)) if normal(facts[key])]
            pairs = zip(filter(normal, texts_of(current)), values, strict=False)
            changes = [(before, after) for before, after in pairs if normal(before) != normal(after)]
        if changes and all(_is_conversion(before, after) for before, after in changes):
            words = "; ".join(f"{before!r} has become {after!r}" for before, after in changes)
            self.notes.append((returned.file, f"{returned.place}: {words}, as spreadsheets do. The row was read"))
            return
        change = f": {changes[0][0]!r:.80} has become {changes[0][1]!r:.80}" if changes else ""
        raise DataError(
            f"the shown texts differ from the sent ones{change}. The answer is to the sent ones: undo the change (was "
            "one column sorted by itself, or the encoding changed?)."
        )

    def _current_rows(self, step: Step) -> Mapping[str, SheetRow]:
        """Returns the rows of a step; none where data that they need can't be read now."""
        if step.name not in self._rows:
            try:
                rows = step.rows(self._state)
            except DataError:
                rows = ()
            self._rows[step.name] = {row.name: row for row in rows}
        return self._rows[step.name]


def _key(cell: str) -> str:
    """Returns the column of a cell of the header."""
    bracketed = re.match(r"\s*(\[\w+\])", cell)
    return bracketed[1] if bracketed else cell.partition(":")[0].strip()


def _header(text: str, delimiter: str) -> list[str]:
    try:
        first = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    except csv.Error:
        return []
    return [_key(cell) for cell in first]


def _normal(value: Any) -> Any:
    if isinstance(value, str):
        return normal(value)
    return [_normal(part) for part in value] if isinstance(value, list | tuple) else value


def _is_conversion(before: str, after: str) -> bool:
    """Whether a spreadsheet makes one text of another: numbers without leading zeros, and dates."""
    before, after = normal(before), normal(after)
    if before.isdecimal() and after.isdecimal():
        return int(before) == int(after)
    return bool(_NUMBERS.fullmatch(before) and _DATE.fullmatch(after))
