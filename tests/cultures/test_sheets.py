"""Who gets which rows: as many people as each needs, evenly, nobody twice, and no sheet says where a row is from."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace

import pytest
from PIL import Image
from support.toy_culture import STEPS, project, written

from culture_tasks.benchmarks.culture_forms import Config, Entry, SheetRow, State
from culture_tasks.cli.main import main
from culture_tasks.cultures.giving_out import assign, give_out
from culture_tasks.cultures.gold import gold_shares, read_gold
from culture_tasks.cultures.project import Project
from culture_tasks.cultures.sheets import SentRow, Sheet, read_sheets
from culture_tasks.errors import DataError, SettingsError

CONFIG = Config(name="toyland", title="Toyland", like="toy", language="am", place="ET")
CHECK = STEPS[1]


def state_of(folder, *people, entries=(), seed=0):
    given: dict[str, dict[str, list[Entry]]] = {}
    for entry in entries:
        given.setdefault(entry.step, {}).setdefault(entry.row, []).append(entry)
    config = replace(CONFIG, people={person: [] for person in people}, seed=seed)
    return State(config=config, folder=folder, entries=given)


def step_of(*rows):
    return replace(CHECK, rows=lambda _: rows)


def out(person, *rows):
    return Sheet("check-1", "check", person, {row: SentRow("check", row, "", {}) for row in rows})


def done(row, person, skipped=None):
    return Entry(step="check", row=row, person=person, skipped=skipped)


def by_row(assignment):
    people: dict[str, set[str]] = {}
    for person, units in assignment.units.items():
        for unit in units:
            for row in unit:
                assert person not in people.setdefault(row.name, set())
                people[row.name].add(person)
    return people


def test_many_rows_go_to_as_many_people_as_they_need_and_evenly(tmp_path):
    people = [f"p{number}" for number in range(10)]
    rows = [
        SheetRow(name=f"r{number}", people=3, not_for=frozenset({people[number % 10]}), group=f"g{number // 3}")
        for number in range(999)
    ]
    state = state_of(tmp_path, *people)
    assignment = assign(step_of(*rows), state)
    given = by_row(assignment)
    assert all(len(given[row.name]) == 3 and not given[row.name] & row.not_for for row in rows)
    sizes = [sum(map(len, units)) for units in assignment.units.values()]
    assert max(sizes) - min(sizes) <= 3
    assert assign(step_of(*rows), state) == assignment
    orders = {tuple(row.name for unit in units for row in unit)[:5] for units in assignment.units.values()}
    assert len(orders) == 10
    assert assign(step_of(*rows), state_of(tmp_path, *people, seed=1)) != assignment


@pytest.mark.parametrize(
    ("row", "entries", "sheets", "options", "expected"),
    [
        (SheetRow(name="x", people=2), [], [], {}, {"a", "b", "c"}),
        (SheetRow(name="x", writer="b"), [], [], {}, {"b"}),
        (SheetRow(name="x", writer="b"), [done("x", "b", skipped="")], [], {}, set()),
        (SheetRow(name="x", not_for=frozenset("ab")), [], [], {}, {"c"}),
        (SheetRow(name="x"), [done("x", "a")], [], {}, set()),
        (SheetRow(name="x", people=3), [done("x", "a")], [], {}, {"b", "c"}),
        (SheetRow(name="x", people=2), [done("x", "a", skipped="hurts")], [], {}, {"b", "c"}),
        (SheetRow(name="x"), [done("x", "model:m")], [], {}, {"a", "b", "c"}),
        (SheetRow(name="x"), [], [out("a", "x")], {}, set()),
        (SheetRow(name="x"), [], [out("a", "x")], {"again": True}, {"a"}),
        (SheetRow(name="x"), [], [out("a", "x")], {"again": True, "people": ["b"]}, set()),
        (SheetRow(name="x"), [], [out("gone", "x")], {}, {"a", "b", "c"}),
        (SheetRow(name="x"), [done("x", "gone")], [], {}, set()),
        (SheetRow(name="x", people=2), [], [out("a", "x")], {}, {"b", "c"}),
        (SheetRow(name="x", people=3), [], [], {"people": ["c"]}, {"c"}),
    ],
)
def test_a_row_goes_to_whom_it_may_go(tmp_path, row, entries, sheets, options, expected):
    """The expected set is everybody who may get it."""
    assignment = assign(step_of(row), state_of(tmp_path, "a", "b", "c", entries=entries), sheets, **options)
    given = by_row(assignment).get("x", set())
    assert given <= expected
    done_or_out = len([one for one in entries if one.skipped is None and not one.is_by_model])
    held = 0 if options.get("again") else sum(sheet.person in "abc" for sheet in sheets)
    assert len(given) == min(len(expected), max(0, row.people - done_or_out - held)) or options.get("people")
    assert assignment.short == {}


def test_rows_without_enough_people_and_full_sheets_are_counted(tmp_path):
    rows = [SheetRow(name=f"r{number}", people=3, group=f"g{number // 2}") for number in range(6)]
    assignment = assign(step_of(*rows), state_of(tmp_path, "a", "b"), most=3)
    assert {person: sum(map(len, units)) for person, units in assignment.units.items()} == {"a": 2, "b": 2}
    assert (assignment.later, set(assignment.short.values()), len(assignment.short)) == (8, {1}, 6)


def test_a_further_row_of_a_group_goes_to_the_people_who_have_the_others(tmp_path):
    rows = [SheetRow(name=name, people=2, group="g") for name in ("x", "y", "z")]
    state = state_of(tmp_path, *"abcdef", entries=[done("x", "e"), done("y", "e"), done("x", "f")])
    given = by_row(assign(step_of(*rows), state, [out("f", "y")]))
    assert given == {"z": {"e", "f"}}


def test_nobody_or_somebody_else(tmp_path):
    with pytest.raises(SettingsError, match="nobody does the step 'check'"):
        assign(CHECK, state_of(tmp_path))
    with pytest.raises(SettingsError, match="'bb': doesn't do the step"):
        assign(CHECK, state_of(tmp_path, "b"), people=["bb"])


def names_on(folder, sheet):
    with (folder / f"{sheet}.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_sheets_are_recorded_and_given_out_once(tmp_path, capsys):
    project(tmp_path, "amina", "li", "sara")
    for name in ("a.png", "b.png", "c.txt"):
        Image.new("RGB", (40, 30)).save(tmp_path / "images" / name, "PNG")
    (tmp_path / "images" / "c.txt").rename(tmp_path / "images" / "c.jpeg")
    call = ["culture", "sheets", str(tmp_path), "--step", "rate"]
    assert main([*call, "--people", "amina"]) == 0
    said = capsys.readouterr().out
    assert "problem: c.jpeg: no image" in said
    assert main(call) == 0
    assert main(call) == 0
    assert "nothing to give out" in capsys.readouterr().out
    sheets = read_sheets(Project.open(tmp_path))
    assert Counter(row.row for sheet in sheets for row in sheet.rows.values()) == {
        f"{image}-{number}": 2 for image in "abc" for number in range(3)
    }
    lines = names_on(tmp_path / "sheets", sheets[0].name)
    assert [line["[row]"] for line in lines] == list(sheets[0].rows)
    assert all(line["[row]"].startswith("r") and "-" not in line["[row]"] for line in lines)
    assert main([*call, "--again", "--people", "amina"]) == 0
    assert read_sheets(Project.open(tmp_path))[-1].rows == sheets[0].rows


def test_a_page_shows_hostile_text_as_text_and_a_missing_image_stops(tmp_path):
    opened = project(tmp_path, "a", "b", language="ar")
    opened.add([replace(one, values=one.values | {"question": HOSTILE}) for one in written(1, "a")], "test")
    (tmp_path / "labels.json").write_text('{"direction": "rtl", "labels": {"Check": "<b>تحقق</b>"}}', "utf-8")
    given = give_out(opened, opened.state(), "check", tmp_path / "out")
    assert ([sheet.name for sheet in given.sheets], given.labels > 20) == (["check-b-1"], True)
    page = (tmp_path / "out" / "check-b-1.html").read_text("utf-8")
    assert page.count("<script") == 1
    assert "&lt;b&gt;تحقق&lt;/b&gt;" in page
    assert '<html lang="ar" dir="rtl">' in page
    assert "default-src &#39;none&#39;" in page
    assert "http" not in page.replace("http-equiv", "")
    line = names_on(tmp_path / "out", "check-b-1")[0]
    assert line["[1] Question"] == f"'{HOSTILE}"
    step = replace(STEPS[1], rows=lambda _: [SheetRow(name="x", image="../culture.toml")])
    with pytest.raises(DataError, match="isn't there, or can't be read"):
        give_out_step(opened, step, tmp_path / "out")


HOSTILE = "=cmd()</textarea><script>alert(1)</script>\"'<img src=x>"


def give_out_step(opened, step, folder):
    object.__setattr__(opened, "steps", {step.name: step})
    return give_out(opened, opened.state(), step.name, folder)


def test_gold_rows_are_mixed_in_unmarked_and_counted_by_person(tmp_path):
    opened = project(tmp_path, "a", "b", options="blanks = 6")
    gold = "Question,Answers,known,rewritten\nIs it?,yes,no,\n=1+1,2,yes|no,Is it?|is   IT\n"
    (tmp_path / "inputs" / "gold_check.csv").write_text(gold, "utf-8")
    opened.add(written(6, "a"), "test")
    given = give_out(opened, opened.state(), "check", tmp_path / "out").sheets
    assert [(sheet.person, len(sheet.rows)) for sheet in given] == [("b", 8)]
    names = [name for name, row in given[0].rows.items() if row.step == "gold:check"]
    assert len(names) == 2
    page = (tmp_path / "out" / "check-b-1.html").read_text("utf-8")
    assert "gold" not in page + (tmp_path / "out" / "check-b-1.csv").read_text("utf-8-sig")
    first, second = (each.row.name for each in read_gold(opened, opened.steps["check"]))
    values = {"rewritten": "IS IT?", "known": True}
    rows = [Entry(step="gold:check", row=row, person="b", values=values) for row in (first, second)]
    opened.add(rows, "test")
    assert gold_shares(opened, opened.state()) == [("check", "b", 1, 2)]
    assert opened.state().entries.keys() == {"write", "gold:check"}
    (tmp_path / "inputs" / "gold_check.csv").write_text("Question,known\nIs it?,perhaps\n", "utf-8")
    with pytest.raises(DataError, match=r"row 2, column 'known': found 'perhaps'. Expected yes or no."):
        read_gold(opened, opened.steps["check"])
