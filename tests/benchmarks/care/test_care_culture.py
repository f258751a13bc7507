"""A culture like CARE, made by scripted people, a careless, a contradicting and a stopping one among them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from support.cultures import cultures_in
from support.groups import SKIP, Group, with_options

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.care.benchmark import BENCHMARK
from culture_tasks.benchmarks.care.documents import CATEGORIES
from culture_tasks.benchmarks.culture_forms import NothingBuiltError
from culture_tasks.errors import DataError
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.people.rated_responses import load as load_rated
from culture_tasks.settings import Settings

WORDS = ["نان", "چای", "نوروز", "سفره", "باغ", "فرش", "شعر", "کوه", "رود", "شب"]  # a right-to-left language
PEOPLE = {"mina": [], "omid": [], "sara": [], "reza": ["write", "check", "rate"], "far": ["rate_again"]}
OPTIONS = {
    "people": "Iranian",
    "questions_per_writer": 6,
    "drafts_per_category": 1,
    "most_unchanged_drafts": 0.5,
    "test_per_category": 2,
    "second_per_category": 3,
    "translations": True,
    "time_bound": "drop",
}
CANDIDATES = "question,answer,source\nپایتخت چین کجاست؟,پکن,Aya\nسمنو چیست؟,خوراک,Aya\nسمنو چیست؟,شیرینی,Aya\nکی؟,,\n"


def written(question, category="entities", **values):
    labels = {"category": category, "scope": "nationwide", "culture": "native"}
    return {"question": question, "answer": f"پاسخ {question}", **labels, **values}


def agrees(category):
    return {"related": True, "category": category, "scope": "nationwide", "culture": "native", "right": True}


def drafted(prompt):
    return f"Sure! {json.dumps({'question': prompt[-90:-80] + '؟', 'answer': 'ب'})}"


def of_number(row):
    return CATEGORIES[int(row.name.rpartition("-")[2]) % 5]


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """A group that has done all steps."""
    folder = tmp_path_factory.mktemp("care") / "iran"
    group = Group(folder, "care", PEOPLE, name="iran", title="Iran", language="fa", place="IR", options=OPTIONS)
    group.input("inputs/candidates.csv", CANDIDATES)
    assert group.ask("draft", "drafter", drafted) == 5
    # mina is honest, omid writes what mina wrote and stops half-way, reza rewrites nothing.
    group.do("write", "reza", lambda row: None if row.writer else SKIP if "چین" in str(row.facts) else confirmed(row))
    group.do("write", "mina", lambda row: written(f"{row.name[-1]} {WORDS[int(row.name[-1])]}؟", of_number(row)))
    group.do("write", "omid", half_way)
    group.do("write", "sara", lambda row: written(f"sara {row.name[-1]}", of_number(row), temporal=row.name[-1] == "6"))
    # sara finds that one isn't about culture and contradicts mina's first category; omid corrects.
    rows = [entry for entry in entries(folder) if entry["step"] == "write"]
    categories = {entry["row"]: entry["values"].get("category") for entry in rows}
    group.do("check", "sara", lambda row: doubts(row, categories[row.name]))
    group.do("check", "omid", lambda row: corrects(row, categories[row.name]))
    group.do("check", "mina", lambda row: agrees(categories[row.name]))
    group.do("check", "reza", lambda row: agrees(categories[row.name]))
    group.do("translate", "mina", lambda row: {"question_en": f"Q {row.name}", "answer_en": "A"})
    for model in ("strong", "weak"):
        group.ask("respond", model, lambda prompt, model=model: f"{prompt} {'خوب' if model == 'strong' else 'بد'}")
    group.do("rate", "mina", lambda row: {"rating": rating(row)})
    group.do("rate_again", "far", lambda row: {"rating": max(1, rating(row) - len(row.facts["Question"]) % 2)})
    return group


def entries(folder):
    return [json.loads(line) for line in (folder / "entries.jsonl").read_text(encoding="utf-8").splitlines()]


def rating(row):
    return (9 if "خوب" in row.facts["Response"] else 3) - len(row.name) % 3


def confirmed(row):
    answer = row.values.get("answer") or "نمی‌دانم"
    return written(row.values["question"], row.values.get("category", "entities"), answer=answer)


def half_way(row):
    number = int(row.name[-1])
    if number == 1:
        return written(f"2 {WORDS[2]} ؟")  # what mina asks, but for white space
    return written(f"omid {row.name}", of_number(row), culture="foreign", foreign="ترکیه") if number < 4 else None


def doubts(row, category):
    if row.name == "w-mina-003":
        return {"related": False}
    return agrees("literacy" if row.name == "w-mina-001" else category)


def corrects(row, category):
    if row.name == "w-mina-003":
        return {"related": False}
    if row.name == "w-sara-002":
        return {**agrees(category), "right": False, "answer": "درست"}
    return agrees(category) | ({"right": False} if row.name == "w-sara-003" else {})


def test_every_row_ends_in_a_table_or_is_left_out_with_its_reason(group):
    built = group.project.form.build(group.project.state())
    reasons = {(row.step, row.row): row.reason for row in built.dropped}
    tables = {row["question"] for name in ("test", "ratings") for row in built.tables[f"{name}.json"]}
    for entry in entries(group.project.folder):
        if entry["step"] == "write" and entry["values"] and entry["values"]["question"] not in tables:
            assert ("write", entry["row"]) in reasons, entry["row"]
    assert {step for step, _ in reasons} == {"write"}
    assert reasons["write", "w-mina-003"] == "it isn't about culture, say most"
    assert reasons["write", "w-sara-003"] == "a checker says that it isn't right, without a correction"
    assert reasons["write", "w-sara-006"] == "its answer changes with time"
    said = list(reasons.values())
    assert "an earlier row asks the same question" in said
    assert "skipped by the person who was to rewrite it" in said
    assert "inputs/candidates.csv has the question twice" in said
    answers = {row["question"]: row["answer"] for row in built.tables["test.json"] + built.tables["ratings.json"]}
    assert answers["sara 2"] == "درست"


def test_a_contradicted_category_is_decided_by_further_people_and_nobody_checks_their_own(group):
    state = group.project.state()
    row = next(row for row in group.project.step("check").rows(state) if row.name == "w-mina-001")
    checkers = [entry.person for entry in state.entries_of("check", row.name)]
    assert len(checkers) > 1
    assert "mina" in row.not_for
    assert "mina" not in checkers


def test_second_raters_took_no_part_and_agreement_is_the_papers(group):
    state, project = group.project.state(), group.project
    assert all(row.not_for >= {"mina", "omid", "sara", "reza"} for row in project.step("rate_again").rows(state))
    figures = {(figure.name, figure.group): figure for figure in project.form.agreement(state)}
    alpha = figures["Krippendorff's alpha, second raters", "all"]
    assert (alpha.passes, alpha.floor, alpha.printed) == (True, 0.84, "0.84 to 0.92 (Table 2)")
    assert alpha.number.low < alpha.number.value < alpha.number.high
    few = figures["Spearman's rho, second raters", "entities"]
    assert few.number.value != few.number.value
    assert "were rated twice" in few.missing
    with pytest.raises(DataError, match=r"Krippendorff's alpha.*Expected 0.99 at least"):
        project.form.build(with_options(state, least_alpha=0.99))


def test_raters_see_a_questions_responses_together_with_its_reference_or_among_them_and_no_model(group):
    state, step = group.project.state(), group.project.step("rate")
    shown, rated = step.rows(state), step.rows(with_options(state, rate_references=True))
    assert not [row for row in shown if "strong" in str(row) or "weak" in str(row)]
    questions = {(row.group, row.facts["Question"]) for row in shown}
    assert len(questions) == len({row.group for row in shown}) == len(shown) / 2
    assert all("Reference answer" in row.facts for row in shown)
    assert not any("Reference answer" in row.facts for row in rated)
    assert len(rated) == len(shown) + len(questions)


def test_what_falls_out_is_known_when_nothing_can_be_built(group):
    state = group.project.state()
    with pytest.raises(NothingBuiltError, match="no question is left for the test, of") as nothing:
        group.project.form.build(with_options(state, checkers=9))
    reasons = {row.row: row.reason for row in nothing.value.dropped}
    assert reasons["w-mina-001"] == "too few people have checked it"
    assert reasons.keys() >= {row.row for row in group.project.form.build(state).dropped if row.step == "write"}


def test_a_question_without_a_majority_says_that_it_waits_for_another_person(group):
    state = group.project.state()
    checks = {"w-mina-001": state.entries_of("check", "w-mina-001")[:1]}
    with pytest.raises(NothingBuiltError) as nothing:
        group.project.form.build(replace(state, entries={**state.entries, "check": checks}))
    reason = "no category has a majority; another person is to check it"
    assert ("write", "w-mina-001", reason) in nothing.value.dropped


def test_unchanged_drafts_are_marked_and_too_many_are_refused(group):
    state = group.project.state()
    [mark] = [mark for mark in group.project.form.build(state).marks if "drafted by drafter" in mark]
    assert "of which nobody changed" in mark
    with pytest.raises(DataError, match="drafts of a model that nobody changed"):
        group.project.form.build(with_options(state, most_unchanged_drafts=0.01))


def test_published_questions_are_left_out_and_those_much_like_them_are_listed(group, tmp_path):
    question = group.project.form.build(group.project.state()).tables["test.json"][0]["question"]
    like = {"culture_type": "Opinion", "associated_culture": "Native (Arab)", "geographic_scope": "Nationwide"}
    (tmp_path / "care").mkdir()
    path = tmp_path / "care" / "Arabic-test.json"
    path.write_text(json.dumps([{"question": f" {question.upper()}!", "answer": "a", **like}]), encoding="utf-8")
    built = group.project.form.build(group.project.state(tmp_path))
    assert [row for row in built.dropped if row.reason == "the question is one of the published benchmark"]
    assert question not in {row["question"] for row in built.tables["test.json"]}


def test_the_built_culture_is_a_benchmark(group, tmp_path):
    built = group.build()
    folder = tmp_path / "elsewhere"
    shutil.copytree(built.folder, folder)
    assert group.build().files == built.files
    with cultures_in(folder):
        benchmark = registry.benchmarks()["care_iran"]
        names = [entry.name for entry in benchmark.entries()]
        assert names == ["care_iran", *(f"care_iran_{way}" for way in ("greedy", "roleplay", "cot", "en"))]
        assert benchmark.marks
        report = registry.check_data("care_iran", None)
        assert report.usable
        assert not any(count.differs for count in report.counts)
        docs = {name: registry.task_named(name).data.load(Settings()).rows for name in names}
        first = docs["care_iran"][0]
        assert (first["language"], first["culture"], first["scope"]) == ("fa", "Native (Iranian)", "nationwide")
        assert docs["care_iran_en"][0]["question"] == f"Q {first['id'].removeprefix('fa-')}"
        [text] = registry.task_named("care_iran_roleplay").prompt(first).parts
        assert text.startswith("You are a native Iranian person, familiar with Iranian culture and traditions.")
        answered = registry.task_named("care_iran").score(first, ["پاسخ"])
        assert answered.rubric is BENCHMARK.rubrics()[0]
        assert answered.rubric.messages(JudgeItem(answered.question, answered.references, "پاسخ"))
        assert answered.groups["culture"] == "Native (Iranian)"
        field = benchmark.report().field_named("language")
        assert (field.places, field.name_of("fa")) == ({"fa": "IR"}, "Iran")
        assert benchmark.report().is_as_published(["care_iran"]) is False
        # People's ratings, for `agreement` and `preferences`.
        rated = load_rated("care_iran", None)
        assert {response.language for response in rated.responses} == {"fa"}
        assert len(rated.responses) == len(group.table("ratings"))


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        ("question\n\n", "holds no rows"),
        ("question;answer\na;b\n", "Expected commas"),
        ("frage\nx\n", "no column 'question'"),
    ],
)
def test_candidates_that_can_not_be_used_are_named(tmp_path, candidates, said):
    group = Group(tmp_path, "care", {}, name="x", title="X", language="fa", place="IR")
    group.input("inputs/candidates.csv", candidates)
    (problem,) = group.project.form.check(group.project.state())
    assert said in problem
