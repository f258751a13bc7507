"""What comes back of sheets, however it was treated on the way: every row is accounted for, and nothing is lost."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_culture import STEPS, project, written

from culture_tasks.benchmarks.culture_forms import Entry, SheetRow
from culture_tasks.cli.main import main
from culture_tasks.cultures.cells import guarded, read_value, unguarded
from culture_tasks.cultures.collecting import collect
from culture_tasks.cultures.giving_out import give_out
from culture_tasks.cultures.labels import Labels
from culture_tasks.cultures.project import Project
from culture_tasks.cultures.sheets import normal, read_sheets

FILLED = {"question": "Who?", "answers": "you\nme", "kind": "A joke", "why": "Ha"}


@pytest.fixture
def opened(tmp_path):
    """A project in which a, b and c have a sheet of two questions to write each."""
    made = project(tmp_path / "toyland", "a", "b", "c")
    give_out(made, made.state(), "write", tmp_path / "out")
    return made


def cells_of(folder, sheet="write-a-1"):
    with (folder / f"{sheet}.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def filled(folder, sheet="write-a-1", rows=(0, 1), **values):
    """Returns the cells of a sheet with values in some rows."""
    header, *lines = cells_of(folder, sheet)
    for number in rows:
        for name, value in (FILLED | values).items():
            at = next(at for at, title in enumerate(header) if title.split(":")[0].split("]")[0].strip("[") == name)
            lines[number][at] = value
    return [header, *lines]


def as_csv(cells, delimiter=","):
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter).writerows(cells)
    return buffer.getvalue()


def saved(rows, sheet="write-a-1", **more):
    return json.dumps({"sheet": sheet, "rows": rows, **more})


def ids(opened, sheet="write-a-1"):
    return list(next(one for one in read_sheets(opened) if one.name == sheet).rows)


def outcome(opened, content, name="back.csv", **options):
    """Collects one file and returns the number of rows of each outcome, the reasons and the notes."""
    path = opened.folder.parent / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    found = collect(opened, [path], **options)
    reasons = [line.reason for line in found.lines if line.reason]
    return Counter(line.outcome for line in found.lines), reasons, [note for _, note in found.notes]


def swapped(cells, column):
    cells[1][column], cells[2][column] = cells[2][column], cells[1][column]
    return cells


def without(cells, *columns):
    return [[cell for at, cell in enumerate(row) if at not in columns] for row in cells]


BAD_FILES = {
    "empty": (lambda out, ids: b"", "the file is empty"),
    "spreadsheet": (lambda out, ids: b"PK\x03\x04rest", "a spreadsheet or an archive"),
    "old spreadsheet": (lambda out, ids: b"\xd0\xcf\x11\xe0rest", "a spreadsheet or an archive"),
    "pdf": (lambda out, ids: b"%PDF-1.7", "a PDF file"),
    "page": (lambda out, ids: (out / "write-a-1.html").read_bytes(), "a page, which holds no answers"),
    "code page": (lambda out, ids: as_csv(filled(out, why="ü")).encode("cp1252"), "not UTF-8 at byte"),
    "cut JSON": (lambda out, ids: saved({ids[0]: {"values": {}}})[:-3], "JSON that is cut short"),
    "JSON list": (lambda out, ids: '[{"a": 1}]', "JSON of another kind"),
    "JSON of something": (lambda out, ids: '{"rows": 3}', "JSON of another kind"),
    "deep JSON": (lambda out, ids: '{"a":' * 100_000, "JSON that is cut short"),
    "table of something": (lambda out, ids: "name,answer\nx,y\n", "no column [sheet]. Found 'name, answer'"),
    "no ids": (lambda out, ids: as_csv(without(filled(out), 1)), "no column [row]"),
    "column twice": (lambda out, ids: as_csv([[*row, row[4]] for row in filled(out)]), "several columns question"),
    "binary": (lambda out, ids: bytes(range(128)) * 9, "no column [sheet]"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_file_that_cannot_be_read_is_refused_in_one_message_and_kept(tmp_path, opened, kind):
    make, message = BAD_FILES[kind]
    counts, reasons, _ = outcome(opened, make(tmp_path / "out", ids(opened)))
    assert counts == {"refused": 1}
    assert message in reasons[0]
    assert opened.entries() == []
    assert len(list((opened.folder / "collected").iterdir())) == 1


def each(change):
    """Returns a change of a sheet that changes each of its rows, the header aside."""
    return lambda cells: [cells[0], *map(change, cells[1:])]


def of_sheet(name):
    return each(lambda row: [name, *row[1:]])


AS_SENT = each(list)
BAD_ROWS = {
    "no required value": (AS_SENT, {"question": ""}, "column 'question': found nothing"),
    "unknown option": (AS_SENT, {"kind": "poem"}, "column 'kind': found 'poem'. Expected one of saying, joke"),
    "too long": (AS_SENT, {"question": "x" * 201}, "at most 200 characters"),
    "two lines": (AS_SENT, {"question": "x\ny"}, "Expected a text of one line"),
    "too many": (AS_SENT, {"answers": "1\n2\n3\n4"}, "Expected at most 3 texts"),
    "not for this": (AS_SENT, {"kind": "saying"}, "Expected nothing where 'kind' isn't 'joke'"),
    "both": (AS_SENT, {"skip": "x"}, "both skipped and filled in"),
    "ids sorted": (lambda cells: swapped(cells, 1), {}, "[row] and [check] don't belong together"),
    "checks sorted": (lambda cells: swapped(cells, 2), {}, "[row] and [check] don't belong together"),
    "shown sorted": (lambda cells: swapped(cells, 3), {}, "the shown texts differ from the sent"),
    "ids and checks sorted": (lambda cells: swapped(swapped(cells, 1), 2), {}, "the shown texts differ from the sent"),
    "encoding lost": (each(lambda row: [*row[:3], "???", *row[4:]]), {}, "has become '???'"),
    "another sheet": (of_sheet("write-a-7"), {}, "no sheet 'write-a-7' of this project. Did you mean 'write-a-1'?"),
    "another row": (each(lambda row: [row[0], f"{row[1]}x", *row[2:]]), {}, "no row 'r"),
    "row of another person": (of_sheet("write-b-1"), {}, "no row 'r"),
    "too many cells": (each(lambda row: [*row, "y"]), {}, "10 cells, while the header has 9"),
    "too few cells": (each(lambda row: row[:-2]), {}, "7 cells, while the header has 9"),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_row_that_cannot_be_used_is_refused_with_its_reason(tmp_path, opened, kind):
    change, values, message = BAD_ROWS[kind]
    counts, reasons, _ = outcome(opened, as_csv(change(filled(tmp_path / "out", **values))))
    assert counts == {"refused": 2}
    assert all(message in reason for reason in reasons), reasons
    assert opened.entries() == []


RECOVERED = {
    "as it was sent": (lambda cells: as_csv(cells), ""),
    "byte order mark": (lambda cells: "\ufeff" + as_csv(cells), ""),
    "semicolons": (lambda cells: as_csv(cells, ";"), "separated by semicolons"),
    "tabs in UTF-16": (lambda cells: as_csv(cells, "\t").encode("utf-16"), "encoded in UTF-16"),
    "Excel's first line": (lambda cells: "sep=;\r\n" + as_csv(cells, ";"), "separated by semicolons"),
    "Unix lines": (lambda cells: as_csv(cells).replace("\r\n", "\n"), ""),
    "columns in another order": (lambda cells: as_csv([row[::-1] for row in cells]), ""),
    "rows in another order": (lambda cells: as_csv([cells[0], *cells[:0:-1]]), ""),
    "blank rows": (lambda cells: as_csv([cells[0], [""] * 9, *cells[1:], [" "]]), ""),
    "further cells, all empty": (lambda cells: as_csv([[*row, "", ""] for row in cells]), ""),
    "a column of the person's own": (lambda cells: as_csv([[*row, "hm"] for row in cells]), "aren't read: hm"),
    "shown columns removed": (lambda cells: as_csv(without(cells, 3)), "weren't compared"),
    "zeros lost": (
        lambda cells: as_csv(each(lambda row: [*row[:3], f"0{row[3]}", *row[4:]])(cells)),
        "has become '01'",
    ),
    "spaces": (lambda cells: as_csv([[f" {cell} " for cell in row] for row in cells]), ""),
}


@pytest.mark.parametrize("kind", RECOVERED)
def test_what_spreadsheets_do_is_undone_or_noted(tmp_path, opened, kind):
    change, note = RECOVERED[kind]
    counts, reasons, notes = outcome(opened, change(filled(tmp_path / "out")))
    assert (counts, reasons) == ({"new": 2}, [])
    assert (note in " ".join(notes)) if note else notes == []
    values = {"question": "Who?", "answers": ["you", "me"], "kind": "joke", "why": "Ha"}
    assert [(one.row, one.person, one.values) for one in opened.entries()] == [
        (f"a-{number}", "a", values) for number in ((2, 1) if kind == "rows in another order" else (1, 2))
    ]


def test_a_broken_quote_loses_nothing_above_it(tmp_path, opened):
    text = as_csv(filled(tmp_path / "out"))
    counts, reasons, _ = outcome(opened, text[: text.rindex("me")])  # within the last row's quotes
    assert counts == {"new": 1, "refused": 1}
    assert reasons[0].startswith("row 3: not CSV from here on")


def test_a_date_is_noted_and_rows_are_told_apart(tmp_path, opened):
    text = as_csv(filled(tmp_path / "out", rows=[0], question="3-Apr"))
    counts, _, notes = outcome(opened, text)
    assert (counts, len(notes)) == ({"new": 1, "empty": 1}, 1)
    assert "row 2, column 'question': '3-Apr' may be a date" in notes[0]
    assert outcome(opened, text)[0] == {"same": 1, "empty": 1}
    counts, reasons, _ = outcome(opened, as_csv(filled(tmp_path / "out", question="Why?")), "other name.txt")
    assert counts == {"conflict": 1, "new": 1}
    assert '"3-Apr"' in reasons[0]
    assert outcome(opened, as_csv(filled(tmp_path / "out", question="Why?")), overwrite=True)[0] == {
        "replaced": 1,
        "same": 1,
    }
    assert [one.values["question"] for one in opened.entries()] == ["3-Apr", "Why?", "Why?"]


def test_files_that_differ_are_conflicts_and_the_last_one_wins_only_if_told(tmp_path, opened, capsys):
    row, other = ids(opened)
    values = {"question": "Who?", "answers": ["you"], "kind": "saying"}
    files = []
    for number, question in enumerate(("Who?", "Whom?"), start=1):
        files.append(tmp_path / f"{number}.json")
        rows = {row: {"values": values | {"question": question}}, other: {"skipped": "too sad"}}
        files[-1].write_text(saved(rows), encoding="utf-8")
    call = ["culture", "collect", str(opened.folder), *map(str, files), "-o", str(tmp_path / "failed.csv")]
    assert main(call) == 1
    assert "1.json, row" in capsys.readouterr().out
    assert [(one.skipped, dict(one.values)) for one in opened.entries()] == [("too sad", {})]
    assert [
        line["outcome"] for line in csv.DictReader(io.StringIO((tmp_path / "failed.csv").read_text("utf-8-sig")))
    ] == ["conflict"] * 2
    assert main([*call, "--replace"]) == 0
    assert opened.state().entries_of("write", "a-1")[0].values["question"] == "Whom?"
    assert outcome(opened, saved({row: {"skipped": ""}}))[0] == {"conflict": 1}


def test_a_row_that_is_not_complete_is_no_rival_of_the_complete_one(tmp_path, opened):
    row = ids(opened)[0]
    parts = [{"question": "Who?"}, {"question": "Who?", "answers": ["you"], "kind": "saying"}]
    for number, values in enumerate(parts):
        (tmp_path / f"{number}.json").write_text(saved({row: {"values": values}}), encoding="utf-8")
    found = collect(opened, [tmp_path / "0.json", tmp_path / "1.json", tmp_path / "none.json"])
    assert [line.outcome for line in found.lines] == ["refused", "new", "refused"]
    assert "can't be read (No such file" in found.lines[2].reason


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "not laid out as a page saves it"),
        ({"values": []}, "not laid out as a page saves it"),
        ({"skipped": True}, "not laid out as a page saves it"),
        ({"values": {"kind": ["joke"]}}, "column 'kind': found ['joke']"),
        ({"values": {"question": {"a": 1}}}, "column 'question': found {'a': 1}"),
        ({"values": {"points": 3}}, "column 'points': unknown"),
        ({"values": {"question": "x\ud800\x00y"}}, "column 'answers': found nothing"),
    ],
)
def test_a_saved_file_that_was_changed_is_refused_by_row(opened, given, message):
    row, other = ids(opened)
    values = {"question": "x\ud800y", "answers": ["a\r\nb", " c "], "kind": "saying"}
    counts, reasons, _ = outcome(opened, saved({row: given, other: {"values": values}}))
    assert counts == {"refused": 1, "new": 1}
    assert message in reasons[0]
    assert opened.entries()[0].values["question"] == "x\ufffdy"


def test_prefilled_rows_count_once_somebody_has_looked_at_them(tmp_path, opened):
    opened.add(written(2, "a"), "test")
    opened.add([replace(one, values=one.values | {"question": "-1+1"}) for one in written(1, "b")], "test")
    give_out(opened, opened.state(), "check", tmp_path / "out")
    sheet = next(one for one in read_sheets(opened) if one.step == "check" and one.person == "c")
    assert len(sheet.rows) == 3
    cells = cells_of(tmp_path / "out", sheet.name)
    known, done, skip = (
        next(at for at, title in enumerate(cells[0]) if title.startswith(name))
        for name in ("known", "[done]", "[skip]")
    )
    assert outcome(opened, as_csv(cells))[0] == {"empty": 3}
    cells[1][known], cells[2][done], cells[3][skip] = "Yes", "x", "x"
    counts, reasons, _ = outcome(opened, as_csv(cells))
    assert (counts, reasons) == (
        {"new": 1, "refused": 1, "skipped": 1},
        ["column 'known': found nothing. Expected yes or no."],
    )
    questions = {one.row: one.values["question"] for one in opened.entries() if one.step == "write"}
    entry = next(one for one in opened.entries() if one.step == "check" and one.skipped is None)
    assert entry.values == {"rewritten": questions[entry.row], "known": True}


def test_a_person_who_stops_is_replaced_and_a_late_sheet_still_counts(tmp_path, opened):
    opened.add(written(2, "a"), "test")
    give_out(opened, opened.state(), "check", tmp_path / "out")
    config = opened.folder / "culture.toml"
    config.write_text(config.read_text("utf-8").replace("b = []\n", "d = []\n"), "utf-8")
    later = Project.open(opened.folder)
    assert [one.person for one in give_out(later, later.state(), "check", tmp_path / "out").sheets] == ["d"]
    cells = cells_of(tmp_path / "out", "check-b-1")
    known = next(at for at, title in enumerate(cells[0]) if title.startswith("known"))
    for row in cells[1:]:
        row[known] = "no"
    assert outcome(later, as_csv(cells))[0] == {"new": 2}


def test_collecting_asks_for_no_published_image(tmp_path, opened, monkeypatch):
    monkeypatch.setattr(opened.form, "images", lambda _: pytest.fail("the Hub was asked"))
    assert outcome(opened, as_csv(filled(tmp_path / "out")))[0] == {"new": 2}


def test_a_thousand_rows_of_ten_people_come_back(tmp_path):
    opened = project(tmp_path / "big", *(f"p{number}" for number in range(10)), options="blanks = 100")
    give_out(opened, opened.state(), "write", tmp_path / "out")
    files = []
    for number in range(10):
        files.append(tmp_path / f"{number}.csv")
        sheet = f"write-p{number}-1"
        files[-1].write_text(as_csv(filled(tmp_path / "out", sheet, rows=range(100))), "utf-8")
    found = collect(opened, files)
    assert found.counts() == {str(file): {"new": 100} for file in files}
    assert len(opened.entries()) == 1000


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


@given(TEXTS)
def test_a_guarded_text_comes_back(text):
    assert unguarded(guarded(text)) == text


@given(question=TEXTS, answers=st.lists(TEXTS, max_size=3))
@settings(max_examples=40)
def test_values_come_back_from_csv_as_they_were_sent(tmp_path_factory, question, answers):
    """Prefilled values of a row, sent as CSV and returned without a change, are those that were sent."""
    folder = tmp_path_factory.mktemp("trip")
    opened = project(folder, "a")
    values = {"question": normal(question), "answers": [one for one in map(normal, answers) if one]}
    values = {name: value for name, value in values.items() if value}
    step = replace(STEPS[0], rows=lambda _: [SheetRow(name="x", facts={"Shown": question}, values=values)])
    object.__setattr__(opened, "steps", {"write": step})
    give_out(opened, opened.state(), "write", folder / "out")
    header, line = cells_of(folder / "out")
    line[next(at for at, title in enumerate(header) if title.startswith("kind"))] = "saying"
    path = folder / "back.csv"
    path.write_text(as_csv([header, line]), encoding="utf-8", newline="")
    found = collect(opened, [path])
    assert found.notes == []
    assert "the shown texts" not in found.lines[0].reason
    if {"question", "answers"} <= values.keys() and "\n" not in values["question"]:
        split = [part.strip() for one in values["answers"] for part in one.split("\n") if part.strip()]
        if len(values["question"]) <= 200 and len(split) <= 3:
            expected = {"question": values["question"], "answers": split, "kind": "saying"}
            assert opened.entries() == [Entry(step="write", row="x", person="a", values=expected)]


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        (STEPS[2].columns[0], "7", 7),
        (STEPS[2].columns[0], "7.0", 7),
        (STEPS[2].columns[0], "7,00", 7),
        (STEPS[2].columns[0], "٧", 7),
        (STEPS[2].columns[0], "7.5", "7.5"),
        (STEPS[2].columns[0], "3-Apr", "3-Apr"),
        (STEPS[2].columns[0], "", None),
        (STEPS[1].columns[1], "TRUE", True),
        (STEPS[1].columns[1], "لا", False),
        (STEPS[1].columns[1], "maybe", "maybe"),
        (STEPS[0].columns[2], "a  JOKE", "joke"),
        (STEPS[0].columns[2], "نكتة", "joke"),
        (replace(STEPS[0].columns[2], choices={"x": "Norms: how to behave"}), "norms", "x"),
        (STEPS[0].columns[1], "one\n\n two ", ["one", "two"]),
    ],
)
def test_cells_are_read_as_people_write_them(column, text, value):
    labels = Labels("rtl", {"No": "لا", "A joke": "نكتة"})
    assert read_value(column, text, labels) == value
