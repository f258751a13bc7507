"""The files of a sheet: a page that needs no network, and a CSV file for spreadsheets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.culture_forms import SheetColumn, SheetRow, Step
from culture_tasks.cultures.cells import as_cell, guarded
from culture_tasks.cultures.labels import Labels
from culture_tasks.cultures.project import Project, expectation
from culture_tasks.cultures.sheets import Sheet
from culture_tasks.errors import DataError
from culture_tasks.pages.markup import as_markup, asset, content_security_policy, templates_of
from culture_tasks.pages.thumbnails import Thumbnails
from culture_tasks.text_tables import write_csv

SHEET, ROW, CHECK, IMAGE, DONE, SKIP = "[sheet]", "[row]", "[check]", "[image]", "[done]", "[skip]"
"""Columns of the CSV file beside those of the step; a shown text's begins with its number in brackets."""

SIDE = 900
"""Pixels of the longer side of an image on a page."""


class _Card(NamedTuple):
    id: str
    facts: Mapping[str, str]
    image: str | None
    values: Mapping[str, Any]


class _Screen(NamedTuple):
    """The rows of a group: what all of them show once, then the rest of each."""

    facts: Mapping[str, str]
    image: str | None
    cards: Sequence[_Card]


def write_sheet(
    project: Project,
    step: Step,
    sheet: Sheet,
    rows: Mapping[str, SheetRow],
    folder: Path,
    labels: Labels,
    images: Thumbnails,
) -> None:
    """Writes the two files of a sheet, with its rows by their names on it; raises DataError for a missing image."""
    text = _page(project, step, sheet, _screens(rows, images), labels)
    write_csv(folder / f"{sheet.name}.csv", *_table(step, sheet, rows, labels))
    (folder / f"{sheet.name}.html").write_text(text, encoding="utf-8", newline="\n")


def _screens(rows: Mapping[str, SheetRow], images: Thumbnails) -> list[_Screen]:
    groups: dict[str, dict[str, SheetRow]] = {}
    for name, row in rows.items():
        groups.setdefault(f"group {row.group}" if row.group else name, {})[name] = row
    screens = []
    for group in groups.values():
        first, *siblings = group.values()
        common = {
            label: text for label, text in first.facts.items() if all(row.facts.get(label) == text for row in siblings)
        }
        image = first.image if all(row.image == first.image for row in siblings) else ""
        if not siblings:
            common, image = {}, ""
        cards = []
        for name, row in group.items():
            facts = {label: text for label, text in row.facts.items() if label not in common}
            cards.append(_Card(name, facts, None if image else _address(row.image, images), row.values))
        screens.append(_Screen(common, _address(image, images), cards))
    return screens


def _address(image: str, images: Thumbnails) -> str | None:
    address = images.address(image)
    if image and address is None:
        raise DataError(
            f"images: {image!r:.80} isn't there, or can't be read. Expected an image below the project's folder "
            "'images': put it there, or remove the row that names it."
        )
    return address


def _page(project: Project, step: Step, sheet: Sheet, screens: Sequence[_Screen], labels: Labels) -> str:
    sheets = (("pages", "page.css"), ("people", "page/sheet.css"), ("cultures", "page/sheet.css"))
    style = "\n".join(asset(f"culture_tasks.{room}", name) for room, name in sheets)
    script = asset("culture_tasks.cultures", "page/sheet.js")
    checks = "".join(row.check for row in sheet.rows.values())
    digest = hashlib.sha256(checks.encode()).hexdigest()[:16]
    rating = next((column.name for column in step.columns if column.kind == "number"), "")
    template = templates_of("culture_tasks.cultures", "page").get_template("sheet.html")
    return template.render(
        step=step,
        sheet=sheet,
        title=project.config.title,
        screens=screens,
        rating=rating,
        label=labels,
        language=project.config.language,
        page_language=project.config.language if labels.translated else "en",
        page_direction=labels.direction if labels.translated else "ltr",
        store=f"culture-tasks {project.config.name} {sheet.name} {digest}",
        policy=content_security_policy(style, script),
        style=as_markup(style),
        script=as_markup(script),
    )


def _table(
    step: Step, sheet: Sheet, rows: Mapping[str, SheetRow], labels: Labels
) -> tuple[list[str], Iterator[list[str]]]:
    """Returns the header and the lines of the CSV file."""
    row_labels = dict.fromkeys(label for row in rows.values() for label in row.facts)
    images, done = [IMAGE], [f"{DONE} {labels('It is right as it stands')}: x"]
    images, done = images * any(row.image for row in rows.values()), done * any(row.values for row in rows.values())
    header = [
        *(SHEET, ROW, CHECK),
        *(f"[{number}] {labels(label)}" for number, label in enumerate(row_labels, start=1)),
        *images,
        *(f"{column.name}: {labels(column.title)} ({_expectation(column, labels)})" for column in step.columns),
        *done,
        f"{SKIP} {labels('Skip this one')}: x",
    ]
    lines = (
        [
            *(sheet.name, name, sheet.rows[name].check),
            *(guarded(row.facts.get(label, "")) for label in row_labels),
            *(row.image for _ in images),
            *(guarded(as_cell(row.values.get(column.name))) for column in step.columns),
            *("" for _ in done),
            "",
        ]
        for name, row in rows.items()
    )
    return header, lines


def _expectation(column: SheetColumn, labels: Labels) -> str:
    words = " | ".join(labels(choice).partition(":")[0] for choice in column.choices.values()) or expectation(column)
    return words if column.required else f"{words}; {labels('may stay empty')}"
