"""Cultures like CrossCult's: from what scripted people write to tasks, both ways."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from PIL import Image
from support import groups
from support.crosscult_cases import rows, write_folder
from support.cultures import cultures_in
from support.in_process import run_lm_eval, run_lmms_eval

from culture_tasks.benchmarks.crosscult.benchmark import BENCHMARK
from culture_tasks.benchmarks.crosscult.culture_entries import partitions_of, row_name
from culture_tasks.benchmarks.culture_forms import Entry, State
from culture_tasks.benchmarks.cultures import BuiltCulture
from culture_tasks.benchmarks.interface import Group, Task
from culture_tasks.cli.main import main
from culture_tasks.cultures.building import build
from culture_tasks.cultures.project import Project, problems_with
from culture_tasks.errors import DataError
from culture_tasks.insertion.core import training_data
from culture_tasks.settings import Settings

FORM = BENCHMARK.culture_form()
PERSIAN = "لطفاً کوتاه و در یک جمله پاسخ دهید."
DRAFT = "openai-like"


def project(folder: Path, way: str, language: str, place: str, **options: object) -> Project:
    """Makes a project of a culture called ``own``."""
    about = {"name": "own", "title": "Own", "way": way, "language": language, "place": place, "options": options}
    return groups.Group(folder, "crosscult", {}, **about).project


def fill(own: Project, data: Path | None, step: str, person: str, values, *, rows=None) -> None:
    """Has a person fill in all rows of a step that they may, or some, by their places."""
    found = [row for row in own.step(step).rows(own.state(data)) if person not in row.not_for]
    entries = []
    for place, row in enumerate(found):
        if rows is None or place in rows:
            answer = values(place, row)
            skipped = answer if isinstance(answer, str) else None
            filled = {} if skipped is not None else answer
            assert skipped is not None or problems_with(own.step(step).columns, filled) == []
            entries.append(Entry(step=step, row=row.name, person=person, values=filled, skipped=skipped))
    own.add(entries, "test")


def answered(place, row):
    return {"fits": True, "question": f"آیا این خوب است، {row.name}؟", "answer": f"بله، {row.name}.", "gloss": "Yes."}


def verdict(name="holds"):
    return lambda place, row: {"verdict": name}


def accounted(state: State, built) -> None:
    """Every row that was written, drafted or brought in is a case or has a reason."""
    cases = {row["id"] for row in built.tables["cases.json"]}
    known = cases | {name.partition(".")[0] for name in cases} | {each.row for each in built.dropped}
    assert all(each.reason for each in built.dropped)
    assert not cases & {each.row for each in built.dropped if "another person" not in each.reason}
    for step, entries in state.entries.items():
        if not step.startswith("check"):
            assert set(entries) <= known
    for image in state.images:
        folder, _, file = image.rpartition("/")
        assert (f"{folder}.{row_name(file)}" if folder else Path(file).stem) in known


@pytest.fixture
def data(tmp_path):
    return write_folder(tmp_path / "data", rows(8, 3))


@pytest.fixture
def persian(tmp_path, data):
    """A partition on 24 published cases: honest, careless and contradicting people, and one who stops."""
    options = {"cases": 3, "parts": ["single", "sequential", "train"], "chains": ["en-fa", "fa-zh-en"]}
    own = project(tmp_path / "persian", "partition", "fa", "IR", system_prompts=[f"fa: {PERSIAN}"], **options)
    drafts = [
        Entry(step="answer", row=row.name, person=f"model:{DRAFT}", values={**answered(0, row), "answer": "بله."})
        for row in own.step("answer").rows(own.state(data))[:4]
    ]
    own.add(drafts, "test")
    confirmed = lambda place, row: dict(row.values) or answered(place, row)  # noqa: E731
    fill(own, data, "answer", "honest", confirmed, rows={0, 2, *range(4, 21)})
    fill(own, data, "answer", "stops", lambda place, row: "no idea", rows={21})
    fill(own, data, "answer", "stops", lambda place, row: {"fits": False}, rows={22})
    fill(own, data, "answer", "late", answered, rows={5})
    fill(own, data, "check", "careless", verdict())
    fill(own, data, "check", "second", lambda place, row: {"verdict": "stereotype" if place == 4 else "holds"})
    fill(own, data, "check", "honest", verdict("rewrite"))  # their own texts: doesn't count, but for late's
    return own


def test_a_partition_becomes_a_benchmark_of_its_own(persian, data):
    culture = build(persian, Settings(data=data)).culture
    again = FORM.build(persian.state(data))
    assert again == FORM.build(persian.state(data))
    accounted(persian.state(data), again)
    table = again.tables["cases.json"]
    assert len(table) == 18
    reasons = " | ".join(each.reason for each in again.dropped)
    for reason in (
        "a model's draft that nobody confirmed",
        "skipped",
        "the image doesn't show the scenario",
        "1 of the 2 natives needed say that it holds (it holds: 1, it is a stereotype: 1)",
        "another person's entry; the first one counts",
    ):
        assert reason in reasons
    (mark,) = again.marks
    assert mark.startswith(f"2 of 18 answers are drafts of a model ({DRAFT})")
    card = (culture.folder / "README.md").read_text("utf-8")
    assert card.count("--tasks crosscult_own --log_samples") == 2  # the task that needs no model which inserts
    benchmark = BENCHMARK.culture(culture)
    assert benchmark.check(None).usable
    named = {entry.name: entry for entry in benchmark.entries()}
    assert {"crosscult_own", "crosscult_own_single", "crosscult_own_sequential_locality_fa"} <= named.keys()
    assert "crosscult_own_retention_fa_zh_en_en_after_3" in named
    assert all(name.startswith("crosscult_own") for name in named)
    loaded = {name: task.data.load(Settings()) for name, task in named.items() if isinstance(task, Task)}
    single = loaded["crosscult_own_single_reliability"].rows
    assert {doc["partition"] for doc in single} == {"fa"}
    prompt = named["crosscult_own_single_reliability"].prompt(single[0])
    assert (prompt.system, prompt.parts[1]) == (PERSIAN, single[0]["question"])
    locality = loaded["crosscult_own_single_cross_language_locality"].rows
    assert {doc["language"] for doc in locality} <= {"en", "zh", "ar"}
    chain = loaded["crosscult_own_sequential_reliability_fa"].rows[0]
    assert [each["partition"] for each in chain["insertions"]] == ["en", "fa"]
    record = named["crosscult_own_single_reliability"].score(single[0], [single[0]["reference"]])
    assert (record.values["rouge_l"], record.judge_language) == (100.0, "Persian")
    assert record.rubric is BENCHMARK.rubrics()[0]
    assert len(benchmark.training_cases(None).cases) == sum(row["split"] == "train" for row in table)
    fields = {field.name: field for field in benchmark.report().fields}
    assert fields["partition"].places["fa"] == "IR"
    assert all(isinstance(entry, Group) == bool(getattr(entry, "members", ())) for entry in named.values())
    assert BuiltCulture.read(culture.folder).facts == culture.facts


def test_agree_tells_what_falls_out_of_too_little(tmp_path, data, monkeypatch, capsys):
    own = project(tmp_path / "own", "partition", "fa", "IR", cases=2, system_prompts=[f"fa: {PERSIAN}"])
    fill(own, data, "answer", "stops", answered, rows={0})
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(data))
    table = tmp_path / "dropped.csv"
    assert main(["culture", "agree", str(own.folder), "-o", str(table)]) == 1
    said = capsys.readouterr().out
    assert "nothing can be built yet: culture: no case is left for the single-insert test" in said
    assert "0 of the 2 natives needed say that it holds (nobody checked it)" in said
    assert table.read_text("utf-8").count("nobody filled it in") == len(own.step("answer").rows(own.state(data))) - 1
    assert main(["culture", "agree", str(own.folder), "-o", "/dev/null/x"]) == 1
    assert "culture agree: can't write to /dev/null/x" in capsys.readouterr().err


def test_methods_are_trained_on_the_published_cases_unless_a_culture_is_named(persian, data, monkeypatch):
    own = BENCHMARK.culture(build(persian, Settings(data=data)).culture)
    monkeypatch.setattr(training_data, "benchmarks", lambda: {"crosscult": BENCHMARK, own.name: own})
    monkeypatch.setattr(training_data, "cultures", lambda: {own.name: None})
    own_cases = training_data.load_training_data(data, benchmark=own.name)
    assert training_data.load_training_data(data).facts.raw != own_cases.facts.raw
    assert {case.insertion.answer[:3] for case in own_cases.cases} == {"بله"}


@pytest.mark.slow
def test_methods_insert_into_a_model_in_a_harness(persian, data, monkeypatch, tiny_vlm):
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    folder = build(persian, Settings(data=data)).culture.folder
    tasks = ["crosscult_own_single", "crosscult_own_sequential_reliability_en", "crosscult_own"]
    arguments = f"pretrained={tiny_vlm},method=finetune,steps=2,device=cpu,answers=off"
    with cultures_in(folder):
        results = run_lmms_eval("knowledge_insertion", tasks, model_args=arguments, bootstrap_iters=0)
        options = {"model_args": f"pretrained={tiny_vlm}", "device": "cpu", "limit": 4, "bootstrap_iters": 0}
        diagnostic = run_lm_eval("hf-multimodal", ["crosscult_own"], folder / "tasks" / "lm_eval", **options)
    locality = results["samples"]["crosscult_own_single_cross_language_locality"]
    chain = results["samples"]["crosscult_own_sequential_reliability_en"]
    records = [sample["judge_score_lexical"] for sample in (*locality, *chain)]
    assert {record["groups"]["partition"] for record in records} == {"fa", "en"}
    assert all(record["groups"]["language"] != "fa" for record in records)
    asked = [sample["judge_score_lexical"]["groups"]["partition"] for sample in diagnostic["samples"]["crosscult_own"]]
    assert asked == ["en", "zh", "ar", "fa"]


@given(st.data())
@settings_of(max_examples=20)
def test_every_row_is_accounted_for(tmp_path_factory, draw):
    """Whoever fills in, skips or drafts whatever, in any order."""
    folder = tmp_path_factory.mktemp("any")
    data = write_folder(folder / "data", rows(4, 3))
    own = project(folder / "own", "partition", "fa", "IR", cases=3, parts=["single", "sequential"], checkers=1, agree=1)
    names = [row.name for row in own.step("answer").rows(own.state(data))]
    kinds = st.sampled_from([*["filled"] * 8, "skipped", "fits not", "drafted", "nothing", "twice"])
    answers: dict[str, list[Entry]] = {}
    for name, kind in zip(names, draw.draw(st.lists(kinds, min_size=12, max_size=12)), strict=True):
        entry = partial(Entry, step="answer", row=name)
        values = {"fits": True, "question": f"q {name}", "answer": "a"}
        answers[name] = {
            "filled": [entry(person="a", values=values)],
            "skipped": [entry(person="a", skipped="")],
            "fits not": [entry(person="a", values={"fits": False})],
            "drafted": [entry(person="model:m", values=values)],
            "twice": [entry(person="a", values=values), entry(person="b", values=values)],
        }.get(kind, [])
    entries = {"answer": answers}
    state = replace(own.state(data), entries=entries)
    checks = own.step("check").rows(state)
    verdicts = draw.draw(st.lists(st.sampled_from([*["holds"] * 8, "rewrite"]), min_size=12, max_size=12))
    entries["check"] = {
        row.name: [Entry(step="check", row=row.name, person="c", values={"verdict": found})]
        for row, found in zip(checks, verdicts, strict=False)
    }
    with suppress(DataError):  # no case is left
        accounted(state, FORM.build(state))


def test_a_changed_answer_is_checked_again(persian, data):
    before = {row.name for row in persian.step("check").rows(persian.state(data))}
    fill(persian, data, "answer", "honest", lambda place, row: {**answered(place, row), "answer": "نه."}, rows={9})
    after = {row.name for row in persian.step("check").rows(persian.state(data))}
    assert len(after - before) == len(before - after) == 1
    assert len(FORM.build(persian.state(data)).tables["cases.json"]) == 17


def test_agreement_has_an_interval_or_says_why_not(persian, data):
    alpha, accepted = FORM.agreement(persian.state(data))
    assert (alpha.number.n, accepted.number.n) == (19, 19)
    assert alpha.number.value == 0.0  # as often as by chance: one of 38 verdicts isn't that the answer holds
    assert math.isnan(alpha.number.low)  # and in a third of resamples none is
    assert accepted.number.value == pytest.approx(18 / 19)
    empty = FORM.agreement(State(config=persian.config, folder=persian.folder, data_folder=data))
    missing = ["0 answers have two checks; 10 are needed", "nobody has done it yet"]
    assert [figure.missing for figure in empty] == missing


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"most_unchanged_drafts": 0.1}, "2 of 18 rows are drafts of a model that nobody changed"),
        ({"agree": 3, "checkers": 3}, "no case is left for the single-insert test"),
        ({"targets": ["ja"]}, "option 'targets': found 'ja'. Expected some of en, zh, ar, fa"),
        ({"chains": ["en-en"]}, "option 'chains': found 'en-en'. Expected two or more of"),
    ],
)
def test_what_a_threshold_refuses(persian, data, changes, message):
    with pytest.raises(DataError, match=message) as refused:
        FORM.build(groups.with_options(persian.state(data), **changes))
    assert getattr(refused.value, "dropped", ())  # what falls out is told even so


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contrasts": ["xx-JP"]}, "option 'contrasts': found 'xx-JP'. Expected codes of a language"),
        ({"contrasts": ["ja"]}, "option 'contrasts': found 'ja'. Expected en, zh, ar, or a language"),
        ({"contrasts": ["fa-IR"]}, "Expected a partition in another language"),
        ({"train_scenarios": 1}, "option 'train_scenarios': found 1. Expected 0, or at least 2"),
        ({"cases": 1}, "field 'cases': found 1. Expected a number from 2 on"),
        ({"agree": 3}, "option 'agree': found 3. Expected at most"),
        ({"parts": ["train"]}, r"option 'parts': .*Expected 'single' among them"),
        ({"chains": ["fa"]}, "option 'chains': found 'fa'. Expected two or more of en, zh, ar, fa"),
        ({"system_prompts": ["fa"]}, "found 'fa'. Expected a language and its prompt"),
    ],
)
def test_what_cannot_be_a_culture(tmp_path, options, message):
    way = "scenarios" if options.keys() & {"contrasts", "train_scenarios"} else "partition"
    with pytest.raises(DataError, match=message):
        project(tmp_path / "own", way, "fa", "IR", **options)


def test_a_language_without_a_system_prompt_and_images_in_the_wrong_place_are_named(tmp_path, data):
    lacking = project(tmp_path / "a", "partition", "fa", "IR")
    (problem,) = FORM.check(lacking.state(data))
    assert "option 'system_prompts': none in Persian" in problem
    scenes = project(tmp_path / "b", "scenarios", "ar", "MA")
    (scenes.folder / "images" / "s99").mkdir(parents=True)
    (scenes.folder / "images" / "s99" / "a.png").write_bytes(b"no image")
    problems = list(FORM.check(scenes.state()))
    assert ["s99/a.png: not in the folder of a scenario" in problems[0], "broken image" in problems[1]] == [True, True]


# Own scenarios

TOPICS = ("social", "religious", "ethical", "social", "religious")


def sheet(place, row):
    stances = {"stance_en": "yes", "stance_ko": "yes" if place == 4 else "no"}
    contexts = {"context_en": "Common.", "context_ko": "Rude."}
    texts = {"description": "Shoes in a home", "boundary": "Not in hotels.", "question_style": "Is this fine?"}
    return {"name": f"Shoes {place}", "topic": TOPICS[place], **texts, **stances, **contexts, "sources": ["a.org"]}


def text(code, place, row):
    gloss = {"gloss": f"No, {row.name}."} if code == "ko" else {}
    return {"question": f"{code} question {row.name}?", "answer": f"{code} answer {row.name}.", **gloss}


@pytest.fixture
def korean(tmp_path):
    """Five scenarios with three images each; the last is judged alike everywhere."""
    options = {"scenarios": 6, "system_prompts": ["ko: 한 문장으로 간단히 대답해 주세요."]}
    own = project(tmp_path / "korean", "scenarios", "ko", "KR", **options)
    for scenario in range(1, 6):
        for number in range(3):
            image = own.folder / "images" / f"s{scenario:02}" / f"own photo {number}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            colour = (0, 0, 0) if (scenario, number) in {(1, 0), (2, 0)} else (scenario * 30, number * 40, 9)
            Image.new("RGB", (12, 8), colour).save(image)
    fill(own, None, "scenario", "writer", sheet, rows=range(5))
    look = {"fits": True, "artefacts": False, "suitable": True, "decision": "keep"}
    fill(own, None, "screen", "looks", lambda place, row: look | ({"artefacts": True} if place == 2 else {}))
    fill(own, None, "question", "writer", lambda place, row: {"fits": True, "question": f"Is this fine, {row.name}?"})
    for code, step in (("ko", "answer"), ("en", "answer_en")):
        fill(own, None, step, f"writes_{code}", lambda place, row, code=code: text(code, place, row))
        check = step.replace("answer", "check")
        fill(own, None, check, "first", verdict())
        fill(own, None, check, "second", verdict(), rows=None if code == "en" else range(9))
    return own


def test_own_scenarios_become_single_cases_and_chains(korean):
    built = FORM.build(korean.state())
    accounted(korean.state(), built)
    table = built.tables["cases.json"]
    parts = {row["scenario"]: row["split"] for row in table}
    assert sorted(parts.values()) == ["sequential", "sequential", "single", "single"]
    reasons = " | ".join(each.reason for each in built.dropped)
    for reason in (
        "the same file as s01/",
        "it has a visible error",
        "judged alike",
        "natives needed say that it holds (it holds: 1)",
        "usable scenario 's05'",
    ):
        assert reason in reasons
    benchmark = BENCHMARK.culture(build(korean, Settings()).culture)
    with pytest.raises(DataError, match="crosscult_own: no scenario is for training"):
        benchmark.training_cases(None)
    assert benchmark.check(None).usable
    tasks = {entry.name: entry for entry in benchmark.entries() if isinstance(entry, Task)}
    docs = tasks["crosscult_own_sequential_generality_ko"].data.load(Settings()).rows
    assert docs[0]["order"] == ["en", "ko"]
    assert (docs[0]["step"], docs[0]["language"]) == (2, "ko")


def test_questions_that_are_published_are_left_out(korean, tmp_path):
    case = next(row for row in FORM.build(korean.state()).tables["cases.json"] if row["scenario"] == "Shoes 2")
    content = rows()
    content[3]["question_en"] = case["question_en"].upper()
    leaked = FORM.build(korean.state(write_folder(tmp_path / "leak", content)))
    assert [each.row for each in leaked.dropped if "published" in each.reason] == [case["id"]]


def test_drafts_are_asked_for_by_figure_8(korean, tmp_path):
    partition = project(tmp_path / "arab", "scenarios", "ar", "arab", contrasts=["en", "zh"])
    step = partition.step("question")
    row = korean.step("question").rows(korean.state())[0]
    prompt = step.ask.prompt(row)
    lines = prompt.parts[1].splitlines()
    assert "The question must keep the same meaning across English/Chinese/Arabic versions." in lines[0]
    assert '    "answer_china_zh_en": "...",' in lines
    assert lines[-3:] == ["Scenario: Shoes 0", "Description: Shoes in a home", "Image file: own photo 0.png"]
    assert [one.code for one in partitions_of(partition.config)] == ["en", "zh", "ar"]
    qa = {"question_en": "Fine\nhere?", "answer_own_ko": "아니요."}
    fits = {"is_match": True, "has_obvious_error": False, "qa": qa}
    assert step.ask.read(json.dumps(fits)) == {"fits": True, "question": "Fine here?"}
    assert step.ask.read("```json\n" + json.dumps(fits | {"is_match": False}) + "\n```") == {"fits": False}
    answer = korean.step("answer").ask
    assert "put the question below into Korean" in answer.prompt(korean.step("answer").rows(korean.state())[0]).parts[1]
    for reply in ("no", "[]", json.dumps(fits), json.dumps(fits | {"is_match": False}), '{"is_match": 1}'):
        with pytest.raises(ValueError, match=r"expected|no text|doesn't fit"):
            answer.read(reply)
