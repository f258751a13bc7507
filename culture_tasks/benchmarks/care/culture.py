"""A further culture like CARE: how a group makes its questions and ratings, and the benchmark that comes of them.

Section 3 and Appendix A of the paper say how its data were made. What they leave open is an option, or stands in the
table of deviations of ``docs/benchmarks/care.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from culture_tasks.benchmarks.care.annotations import HUMAN_RATINGS
from culture_tasks.benchmarks.care.benchmark import SAMPLED, VARIANTS, task_of
from culture_tasks.benchmarks.care.documents import CATEGORIES, RELEASED_NAMES, SCOPES, SOURCES, table_check
from culture_tasks.benchmarks.care.report import report_of
from culture_tasks.benchmarks.care.rubrics import RUBRICS
from culture_tasks.benchmarks.culture_rows import (
    alike,
    check_drafts,
    clean,
    comparable,
    digest,
    drawn,
    json_object,
    negative_options,
    published_questions,
    without_published,
)
from culture_tasks.benchmarks.cultures import (
    MODEL,
    Ask,
    Built,
    BuiltCulture,
    Column,
    Config,
    CultureForm,
    Dropped,
    Figure,
    Option,
    Row,
    State,
    Step,
)
from culture_tasks.benchmarks.human_ratings import HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.interface import Benchmark, Decoding, Entry, Prompt
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport, check_tables
from culture_tasks.data.tables import OptionalLabel, OptionalText, TableRow, Text, read_file, usable_rows
from culture_tasks.errors import DataError
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file

_T = TypeVar("_T")

_TEST, _RATINGS, _TEST_RATINGS, _NEAR = "test", "ratings", "test_ratings", "near_duplicates"

_CATEGORY_ABOUT = {
    "entities": "A fact about something that the culture has, with one right answer: who founded a state, where a "
    "drink comes from. No facts that any encyclopedia has of any country, such as its population.",
    "opinion": "An open question about something that the culture has, on which views differ: the main ideas of a "
    "thinker, whether people like a dish. The answer gives the views that are common.",
    "norms": "How people are expected to behave towards each other. They learn it on purpose, such as how to address "
    "elders.",
    "commonsense": "An everyday thing that people take for granted and never had to learn, such as whether one brings "
    "paper to a public toilet.",
    "literacy": "Proverbs, idioms, slang, literature and film. To translate a text is no such question.",
}
_CATEGORY_LABELS: dict[str, str] = {name: f"{title}: {_CATEGORY_ABOUT[name]}" for name, title in RELEASED_NAMES.items()}

_SCOPE_LABELS = {
    "sub_nationwide": "A part of a country, such as a city",
    "nationwide": "A whole country",
    "continent_wide": "Several countries",
    "worldwide": "The whole world",
}
_RELEASED_SCOPES = {scope: scope.replace("_", "-").capitalize() for scope in SCOPES}

_CULTURE_LABELS = {
    "native": "Ours",
    "foreign": "Another particular culture",
    "general": "None in particular, such as the oldest cultural heritage on earth",
}

_FLAGS = (
    Column(
        name="moral",
        title="Sensitive",
        kind="yes_no",
        about="It touches a stereotype or could hurt, so that an answer needs care. Empty means no.",
        required=False,
    ),
    Column(
        name="temporal",
        title="Changes with time",
        kind="yes_no",
        about="The right answer depends on the year in which one asks. Empty means no.",
        required=False,
    ),
)

_LABELS = (
    Column(name="category", title="Kind of question", kind="choice", choices=_CATEGORY_LABELS),
    Column(name="scope", title="Where it holds", kind="choice", choices=_SCOPE_LABELS),
    Column(name="culture", title="Whose culture", kind="choice", choices=_CULTURE_LABELS),
)

_NATIVES = "native speakers who have lived in the culture for more than 5 years (Figure 16)"

_WRITE = """Write questions about your culture, each with its answer, in your own language. Some rows hold a question \
that somebody brought in, or a draft of a model: rewrite it until you would ask and answer it like this yourself.

Only people of the culture know the answer of a good question, or care about it: it is about something that exists \
there alone, or is understood differently there. The population of a country, a riddle of numbers or a fact of \
biology is no such question. Skip a row that isn't about culture, or that you don't want to work on.

Ask one thing, and ask it directly: not for customs about shoes, but whether people wear outdoor shoes at home. \
Offer no options. Of options in a draft, make one sentence that says all that is right.

The answer says what is right and explains it where that helps; a good short answer may stay short. It has no \
stereotype and no overgeneralisation: what is so in many families is not so in all. Leave out very controversial topics.

Posts in which people tell what surprised them abroad give ideas. Don't copy them, and don't use the names of private \
persons."""

_CHECK = """Judge questions that somebody else wrote. You don't see how they labelled them.

A question is about culture if only people of a culture know its answer or care about it. If it isn't, say no and \
leave the rest empty.

If the question could be put better, or the answer is wrong, incomplete or overgeneralises, correct what needs it. \
If it can't be corrected, leave both corrections empty: then it is left out."""

_TRANSLATE = """Translate question and answer into English. Keep the meaning; explain a word that English doesn't have \
only where the question can't be understood without it."""

_RATE = """Rate how well each response fits what native speakers of your culture expect, from 1 (poor) to 10 \
(excellent). First bring the responses to a question into an order, from the most to the least appropriate; equally \
good ones get the same rating. Judge what a response says, not how long it is."""


def _option(name: str, default: bool | float | str | Sequence[str], about: str, *choices: str) -> Option:
    return Option(name=name, default=default, about=about, choices=choices)


_OPTIONS = (
    _option(
        "people",
        "",
        "What a person of the culture is called, such as Korean: the role-play prompt (Figure 8) says it to the model. "
        "Empty: there is no role-play task.",
    ),
    _option(
        "questions_per_writer",
        15,
        "How many empty rows each writer gets. The paper gives totals alone: 190 to 260 new questions a culture by 2 "
        "to 5 people. 15 each by 10 people make a test of 150.",
    ),
    _option(
        "drafts_per_category",
        0,
        "How many questions of each category a model drafts. The paper has no drafts, so the default is none.",
    ),
    _option(
        "most_unchanged_drafts",
        0.1,
        "Largest share of the questions that may be drafts of a model which nobody changed. Not in the paper.",
    ),
    _option(
        "checkers",
        1,
        "How many other people check a question. The paper doesn't say whether anybody did. Where the category has no "
        "majority, the writer counted, up to two more are asked; what has none then is left out.",
    ),
    _option(
        "sensitive",
        "keep",
        "What happens to questions with the flag of sensitive ones. The paper left out very controversial topics and "
        "doesn't say what the flag did.",
        *("keep", "drop"),
    ),
    _option(
        "time_bound",
        "keep",
        "What happens to questions whose answer changes with time. The paper doesn't say. Who keeps them should name "
        "the date in the data card.",
        *("keep", "drop"),
    ),
    _option(
        "test_cultures",
        ("native",),
        "Whose culture the questions of the test are about. In the released tests all are about the native one.",
        *_CULTURE_LABELS,
    ),
    _option("test_per_category", 30, "Questions of each category in the test; in the paper 30 (section 3.2)."),
    _option(
        "near_duplicates",
        "keep",
        "What happens to questions outside of the test that are much like one in it. The paper's 3 to 6 stayed, as it "
        "seems; they are listed either way.",
        *("keep", "drop"),
    ),
    _option(
        "translations", False, "Whether people translate the test into English, for the task that asks in English."
    ),
    _option("show_reference", True, "Whether raters see the reference answer, as on the paper's page (Figure 15)."),
    _option(
        "rate_references",
        False,
        "Whether the reference answer is among the responses that are rated. It is in the paper's data, which doesn't "
        "say whether raters knew. By default it isn't, since raters see it.",
    ),
    _option("second_per_category", 15, "Questions of each category that are rated twice; in the paper 15, 75 in all."),
    _option("second_raters", 1, "How many second raters each of them gets; in the paper 1 to 4 (section 3.2)."),
    _option(
        "outside_raters",
        True,
        "Whether only people who neither wrote nor checked questions may be second raters, as in the paper.",
    ),
    _option("least_alpha", 0.84, "Krippendorff's alpha that ratings must reach: the lowest of the paper's (Table 2)."),
    _option("least_pearson", 0.89, "Pearson's r that ratings must reach: the lowest of the paper's (Table 2)."),
)


# What people wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A question, in the writer's words and labels, or after its check.

    Attributes:
        name: Name of its row in the step ``write``.
        source: Where it comes from, for the column of that name.
        draft: Question and answer of the model's draft, and the model; None without one.
    """

    name: str
    text: str
    answer: str
    category: str
    scope: str
    culture: str
    foreign: str
    moral: bool
    temporal: bool
    writer: str
    source: str
    draft: tuple[str, str, str] | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether it is a draft in which nobody changed a word."""
        return self.draft is not None and self.draft[:2] == (self.text, self.answer)


class _Candidate(TableRow):
    """A row of ``inputs/candidates.csv``."""

    question: Text
    answer: OptionalText = None
    source: OptionalLabel = None


_BY_PEOPLE = "written by native speakers"


def _candidates(state: State) -> tuple[list[_Candidate], list[str]]:
    path = state.folder / "inputs" / "candidates.csv"
    if not path.is_file():
        return [], []
    try:
        rows, problems = usable_rows(read_file(path), _Candidate, {})
    except DataError as error:
        return [], [str(error)]
    return list(rows.values()), problems


def _candidate_name(candidate: _Candidate) -> str:
    return f"c-{digest(clean(candidate.question))}"


def _drafts(state: State) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """Yields row, category, values and model of each draft."""
    for row in state.entries.get("draft", {}):
        for entry in state.by_models("draft", row):
            yield row, row.split("-")[1], entry.values, entry.person.removeprefix(MODEL)


def _draft_name(row: str, model: str) -> str:
    return f"{row}-{digest(model)[:6]}"


def _write_rows(state: State) -> list[Row]:
    def row(name: str, shown: Mapping[str, str], values: Mapping[str, Any]) -> Row:
        is_skipped = state.skipped("write", name) and not state.of("write", name)
        return Row(name=name, shown=shown, values=values, people=0 if is_skipped else 1)

    rows = []
    for each in _candidates(state)[0]:
        answer = clean(each.answer)
        rows.append(
            row(
                _candidate_name(each),
                {"Question that was brought in": clean(each.question), **({"Its answer": answer} if answer else {})},
                {"question": clean(each.question), **({"answer": answer} if answer else {})},
            )
        )
    for name, category, values, model in _drafts(state):
        shown = {"Draft of a model": str(values["question"]), "Its answer": str(values["answer"])}
        rows.append(row(_draft_name(name, model), shown, {**values, "category": category}))
    for person, steps in state.config.people.items():
        if not steps or "write" in steps:
            numbers = range(1, state.config.options["questions_per_writer"] + 1)
            rows += [Row(name=f"w-{person}-{number:03d}", writer=person) for number in numbers]
    return list({one.name: one for one in rows}.values())


def _draft_rows(state: State) -> list[Row]:
    return [
        Row(
            name=f"d-{category}-{number:03d}",
            shown={
                "Category": RELEASED_NAMES[category],
                "What it is": _CATEGORY_ABOUT[category],
                "Number": str(number),
            },
        )
        for category in CATEGORIES
        for number in range(1, state.config.options["drafts_per_category"] + 1)
    ]


def _written(state: State, dropped: list[Dropped]) -> list[_Question]:
    """Returns the questions that people wrote or rewrote, and adds to what is dropped the rows that nobody did."""
    candidates = {_candidate_name(each): each for each in _candidates(state)[0]}
    drafts = {
        _draft_name(row, model): (clean(values["question"]), clean(values["answer"]), model)
        for row, _, values, model in _drafts(state)
    }
    questions = []
    for name in dict.fromkeys((*candidates, *drafts, *state.entries.get("write", {}))):
        entries = state.of("write", name)
        if entries:
            values = entries[0].values
            source = candidates[name].source if name in candidates else None
            questions.append(
                _Question(
                    name=name,
                    text=clean(values["question"]),
                    answer=clean(values["answer"]),
                    category=values["category"],
                    scope=values["scope"],
                    culture=values["culture"],
                    foreign=clean(values.get("foreign")),
                    moral=bool(values.get("moral")),
                    temporal=bool(values.get("temporal")),
                    writer=entries[0].person,
                    source=source or _BY_PEOPLE,
                    draft=drafts.get(name),
                )
            )
        elif state.skipped("write", name) and (name in candidates or name in drafts):
            dropped.append(Dropped("write", name, "skipped by the person who was to rewrite it"))
        elif name in candidates or name in drafts:
            dropped.append(Dropped("write", name, "nobody has rewritten it yet"))
        dropped += [Dropped("write", name, "a second version; the first one counts") for _ in entries[1:]]
    return questions


def _majority(votes: Sequence[_T]) -> _T | None:
    (first, times), *_ = Counter(votes).most_common(1)
    return first if 2 * times > len(votes) else None


def _votes(question: _Question, checks: Sequence[Mapping[str, Any]], column: str) -> list[Any]:
    """Returns the writer's label and those of the people who checked it as a question about culture."""
    return [getattr(question, column), *(values[column] for values in checks if values["related"])]


def _is_open(question: _Question, checks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether writer and checkers leave open whether it is about culture, or of which category it is."""
    related = _majority([True, *(values["related"] for values in checks)])
    return related is None or (related and _majority(_votes(question, checks, "category")) is None)


def _check_rows(state: State) -> list[Row]:
    least, rows = state.config.options["checkers"], []
    for question in _written(state, []):
        checks = [entry.values for entry in state.of("check", question.name)]
        needs_more = least <= len(checks) < least + 2 and _is_open(question, checks)
        rows.append(
            Row(
                name=question.name,
                shown={"Question": question.text, "Answer": question.answer},
                not_for=frozenset([question.writer]),
                people=len(checks) + 1 if needs_more else least,
            )
        )
    return rows


def _checked(state: State, question: _Question) -> _Question | str:
    """Returns a question with the labels that most people give it and its last correction, or why it is left out."""
    least = state.config.options["checkers"]
    if not least:
        return question
    checks = [entry.values for entry in state.of("check", question.name)][: least + 2]
    if len(checks) < least:
        return "too few people have checked it"
    related = _majority([True, *(values["related"] for values in checks)])
    if not related:
        return "no majority says that it is about culture" if related is None else "it isn't about culture, say most"
    category = _majority(_votes(question, checks, "category"))
    if category is None:
        return "no category has a majority"
    checks = [values for values in checks if values["related"]]
    wrong = [values for values in checks if values["right"] is False]
    if any(not values.get("question") and not values.get("answer") for values in wrong):
        return "a checker says that it isn't right, without a correction"
    corrected = wrong[-1] if wrong else {}
    # Of labels that are named equally often, the writer's comes first.
    usual = {name: Counter(_votes(question, checks, name)).most_common(1)[0][0] for name in ("scope", "culture")}
    return replace(
        question,
        text=clean(corrected.get("question")) or question.text,
        answer=clean(corrected.get("answer")) or question.answer,
        category=category,
        moral=question.moral or any(values.get("moral") for values in checks),
        temporal=question.temporal or any(values.get("temporal") for values in checks),
        **usual,
    )


def _usable(state: State, dropped: list[Dropped]) -> list[_Question]:
    """Returns the questions that can be asked, and adds the others to what is dropped."""
    options, questions = state.config.options, []
    first: set[str] = set()
    for written in _written(state, dropped):
        checked = _checked(state, written)
        if isinstance(checked, str):
            reason = checked
        elif checked.moral and options["sensitive"] == "drop":
            reason = "it is sensitive"
        elif checked.temporal and options["time_bound"] == "drop":
            reason = "its answer changes with time"
        elif comparable(checked.text) in first:
            reason = "an earlier row asks the same question"
        else:
            first.add(comparable(checked.text))
            questions.append(checked)
            continue
        dropped.append(Dropped("write", written.name, reason))
    return without_published("write", questions, _published(state), dropped)


def _published(state: State) -> list[str]:
    return published_questions(SOURCES.values(), state.data_folder)


def _by_category(questions: Iterable[_Question], most: int, seed: int, draw: str) -> list[_Question]:
    """Draws so many questions of each category, and returns them in the order of the categories and of their names."""
    by_name = {question.name: question for question in questions}
    chosen = []
    for category in CATEGORIES:
        names = [name for name, question in by_name.items() if question.category == category]
        chosen += sorted(drawn(names, seed, draw)[:most])
    return [by_name[name] for name in chosen]


def _test(state: State, questions: Iterable[_Question]) -> list[_Question]:
    options = state.config.options
    able = [question for question in questions if question.culture in options["test_cultures"]]
    return _by_category(able, options["test_per_category"], state.config.seed, "test")


def _translate_rows(state: State) -> list[Row]:
    questions = _test(state, _usable(state, []))
    return [Row(name=each.name, shown={"Question": each.text, "Answer": each.answer}) for each in questions]


# Responses and their ratings


@dataclass(frozen=True, slots=True)
class _Response:
    """A response to a question; several models may have given the same one, and an empty name is people's."""

    row: str
    question: _Question
    text: str
    models: list[str]


def _respond_name(question: _Question) -> str:
    """Returns the row in which models answer a question; a changed question is another row."""
    return f"{question.name}.{digest(question.text)[:6]}"


def _responses(state: State, question: _Question) -> list[_Response]:
    """Returns the responses to a question in an order that says nothing of who gave them."""
    texts: dict[str, list[str]] = {}
    for entry in state.by_models("respond", _respond_name(question)):
        texts.setdefault(clean(entry.values["response"]), []).append(entry.person.removeprefix(MODEL))
    if texts and state.config.options["rate_references"]:
        texts.setdefault(question.answer, []).append("")
    named = {f"{_respond_name(question)}.{digest(text)[:8]}": text for text in texts}
    return [_Response(name, question, named[name], texts[named[name]]) for name in sorted(named)]


def _respond_rows(state: State) -> list[Row]:
    return [Row(name=_respond_name(each), shown={"Question": each.text}) for each in _usable(state, [])]


def _rate_row(state: State, response: _Response) -> Row:
    shown = {"Question": response.question.text}
    if state.config.options["show_reference"]:
        shown["Reference answer"] = response.question.answer
    return Row(name=response.row, shown={**shown, "Response": response.text}, group=response.question.name)


def _rate_rows(state: State) -> list[Row]:
    return [_rate_row(state, each) for question in _usable(state, []) for each in _responses(state, question)]


def _second_rows(state: State) -> list[Row]:
    options = state.config.options
    answered = {question.name: question for question in _usable(state, []) if _responses(state, question)}
    chosen = _by_category(answered.values(), options["second_per_category"], state.config.seed, "second")
    made = (state.entries.get("write", {}), state.entries.get("check", {}))
    curators = {entry.person for step in made for entries in step.values() for entry in entries if not entry.by_model}
    rows = []
    for question in chosen:
        checkers = {entry.person for entry in state.of("check", question.name)}
        others = curators if options["outside_raters"] else {question.writer, *checkers}
        for response in _responses(state, question):
            first = {entry.person for entry in state.of("rate", response.row)}
            row = _rate_row(state, response)
            rows.append(replace(row, not_for=frozenset(others | first), people=options["second_raters"]))
    return rows


def _rating(state: State, response: _Response) -> int | None:
    """Returns the first rater's rating."""
    entries = state.of("rate", response.row)
    return entries[0].values["rating"] if entries else None


# Agreement

_STATISTICS = {
    "krippendorff_alpha": ("Krippendorff's alpha", "0.84 to 0.92 (Table 2)"),
    "pearson": ("Pearson's r", "0.89 to 0.93 (Table 2)"),
    "spearman": ("Spearman's rho", "0.88 to 0.93 (Table 2)"),
    "kendall_tau_b": ("Kendall's tau", "0.71 to 0.77 (Table 2)"),
}
_LEAST_QUESTIONS = 5
"""Questions under which agreement isn't told: it would be any number."""


def _rated_twice(state: State, questions: Iterable[_Question]) -> Iterator[tuple[_Question, int, int]]:
    """Yields the question, the first and the second rating of each response that two people rated."""
    for question in questions:
        for response in _responses(state, question):
            entries = state.of("rate", response.row)
            for second in state.of("rate_again", response.row) if entries else ():
                if second.person != entries[0].person:
                    yield question, entries[0].values["rating"], second.values["rating"]


def _agreement_of(pairs: Sequence[tuple[_Question, int, int]], of: str, options: Mapping[str, Any]) -> Iterator[Figure]:
    from culture_tasks.metrics.rater_agreement import agreement

    clusters = [question.name for question, _, _ in pairs]
    first, second = [float(pair[1]) for pair in pairs], [float(pair[2]) for pair in pairs]
    found = agreement(first, second, clusters=clusters)
    floors = {"krippendorff_alpha": options["least_alpha"], "pearson": options["least_pearson"]}
    for name, (title, printed) in _STATISTICS.items():
        interval = found.estimates[name]  # type: ignore[index]
        missing = ""
        if found.clusters < _LEAST_QUESTIONS:
            missing = f"{found.clusters} questions were rated twice, and {_LEAST_QUESTIONS} are the least"
        elif interval.value != interval.value:
            missing = interval.reason or ""
        value = Figure(f"{title}, second raters", of, float("nan"), found.pairs, missing=missing)
        if not missing:
            value = value._replace(value=interval.value, low=interval.low, high=interval.high)
        if of == "all":
            value = value._replace(printed=printed, floor=floors.get(name))
        elif name == "spearman":
            value = value._replace(printed="0.84 to 0.99 (Table 11)")
        yield value


def _agreement_of_labels(state: State) -> Iterator[Figure]:
    from culture_tasks.metrics.intervals import share_interval

    same: list[float] = []
    clusters: list[str] = []
    for question in _written(state, []):
        checks = [entry.values for entry in state.of("check", question.name) if entry.values["related"]]
        same += [float(values["category"] == question.category) for values in checks]
        clusters += [question.name] * len(checks)
    if same:
        share = share_interval(same, clusters)
        yield Figure("same category, writer and checker", "all", share.value, len(same), share.low, share.high)


# The form


class CareForm(CultureForm):
    """How a further culture of CARE is made: section 3, with the guidelines of Figures 16 to 20."""

    ways: Mapping[str, str] = {"": "questions about one culture in its own language, and rated responses"}
    paper = (
        "CARE (Guo et al., 2025) has 150 test questions a culture, 30 of each of five categories, in the culture's own "
        "language; 2 to 5 native speakers wrote and selected them. Nine models answered 3,490 questions in all, the "
        "same people rated the responses, and 1 to 4 others rated those to 75 questions again. A mean over 150 "
        "questions is known to about 0.4 of ten points, over 75 to about 0.6, over the 30 of a category to about 0.9: "
        "75 is enough to place a model roughly, 150 to compare two. Nine responses to each of 150 questions are 1,350 "
        "ratings."
    )

    def options(self, way: str) -> Sequence[Option]:  # noqa: ARG002 - there is one way
        """Returns what a group decides beforehand."""
        return _OPTIONS

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps; without drafts, checkers or translations, theirs are left out."""
        options = config.options
        steps = [_draft_step(config), *_STEPS]
        needed = {
            "draft": options["drafts_per_category"],
            "check": options["checkers"],
            "translate": options["translations"],
            "rate_again": options["second_per_category"] and options["second_raters"],
        }
        return [step for step in steps if needed.get(step.name, True)]

    def check(self, state: State) -> Iterable[str]:
        """Yields what is wrong with the candidates and with the numbers among the options."""
        yield from negative_options(state)
        yield from _candidates(state)[1]

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns the agreement of first and second raters (Tables 2 and 11), and of writers and checkers."""
        figures = list(_agreement_of_labels(state))
        pairs = list(_rated_twice(state, _usable(state, [])))
        if pairs:
            figures += _agreement_of(pairs, "all", state.config.options)
            for category in CATEGORIES:
                if own := [pair for pair in pairs if pair[0].category == category]:
                    figures += _agreement_of(own, category, state.config.options)
        return figures

    def build(self, state: State) -> Built:
        """Returns the test, the rated responses to the other questions, and those to the test's.

        Raises:
            DataError: If no question is left, ratings don't agree, or too many drafts are unchanged.
        """
        return _built(state, self.agreement(state))


FORM = CareForm()


def _draft_step(config: Config) -> Step:
    def prompt(row: Row) -> Prompt:
        from culture_tasks.vocabulary import language

        values = {
            "culture": config.title,
            "language": language(config.language).name,
            "category": row.shown["Category"],
            "definition": row.shown["What it is"],
            "number": row.shown["Number"],
        }
        return Prompt((prompt_file(__package__, "culture_draft.v1").fill(values),))

    return Step(
        name="draft",
        title="Drafts of a model",
        about="A model drafts questions with their answers. They are ideas for the writers, and count only once a "
        "person has rewritten or confirmed them.",
        who="a model",
        source="not in the paper, in which people write all questions",
        columns=(
            Column(name="question", title="Question", kind="long_text"),
            Column(name="answer", title="Answer", kind="long_text"),
        ),
        rows=_draft_rows,
        ask=Ask(
            prompt=prompt,
            read=_read_draft,
            decoding=Decoding(max_tokens=1024, temperature=1.0),
            version="culture_draft.v1",
        ),
        by_people=False,
    )


def _read_draft(reply: str) -> Mapping[str, Any]:
    draft = json_object(reply)
    for name in ("question", "answer"):
        if not isinstance(draft.get(name), str) or not draft[name].strip():
            raise ValueError(f"expected a text as {name!r}, found {draft.get(name)!r:.80}")
    return {"question": draft["question"], "answer": draft["answer"]}


def _read_response(reply: str) -> Mapping[str, Any]:
    if not reply.strip():
        raise ValueError("expected an answer, found nothing")
    return {"response": reply.strip()}


_RATED = (Column(name="rating", title="Rating", kind="number", about="1: poor, 10: excellent", lowest=1, highest=10),)

_STEPS = (
    Step(
        name="write",
        title="Writing",
        about=_WRITE,
        who=_NATIVES,
        source="sections 3.1 and 3.2, Figures 16 to 20",
        columns=(
            Column(name="question", title="Question", kind="long_text"),
            Column(name="answer", title="Answer", kind="long_text"),
            *_LABELS,
            Column(name="foreign", title="Which other culture", only_if=("culture", "foreign")),
            *_FLAGS,
        ),
        rows=_write_rows,
    ),
    Step(
        name="check",
        title="Check by another person",
        about=_CHECK,
        who=_NATIVES,
        source="the labels are those of Figures 16 to 18; the paper doesn't say whether a second person gave them",
        columns=(
            Column(name="related", title="About culture", kind="yes_no"),
            *(replace(column, only_if=("related", True)) for column in (*_LABELS, *_FLAGS)),
            Column(
                name="right",
                title="Question and answer are right as they are",
                kind="yes_no",
                only_if=("related", True),
            ),
            *(
                Column(name=name, title=title, kind="long_text", required=False, only_if=("right", False))
                for name, title in (("question", "Corrected question"), ("answer", "Corrected answer"))
            ),
        ),
        rows=_check_rows,
    ),
    Step(
        name="translate",
        title="Translation into English",
        about=_TRANSLATE,
        who="people who know both languages well",
        source="section 5.2, which doesn't say who translated",
        columns=(
            Column(name="question_en", title="Question in English", kind="long_text"),
            Column(name="answer_en", title="Answer in English", kind="long_text"),
        ),
        rows=_translate_rows,
    ),
    Step(
        name="respond",
        title="Responses of models",
        about="Models answer all questions, the question alone. Nine models did in the paper; ask several, strong and "
        "weak ones, so that there are good and bad responses.",
        who="models",
        source="section 3.2 and Appendix B: temperature 0.7, top-p 1, at most 1,024 tokens",
        columns=(Column(name="response", title="Response", kind="long_text"),),
        rows=_respond_rows,
        ask=Ask(
            prompt=lambda row: Prompt(
                (prompt_file(__package__, "plain.v1").fill({"question": row.shown["Question"]}),)
            ),
            read=_read_response,
            decoding=SAMPLED,
            version="plain.v1",
        ),
        by_people=False,
    ),
    Step(
        name="rate",
        title="Rating",
        about=_RATE,
        who=_NATIVES,
        source="section 3.2 and Figure 15; the instructions of Figure 14 aren't in its text",
        columns=_RATED,
        rows=_rate_rows,
    ),
    Step(
        name="rate_again",
        title="Second rating",
        about=_RATE,
        who=f"{_NATIVES}; in the paper, people who took no part in writing",
        source="section 3.2: 75 random questions for each further rater, 15 of each category",
        columns=_RATED,
        rows=_second_rows,
    ),
)


# What is built


def _label(question: _Question, config: Config) -> str:
    """Returns the associated culture as the released data write it."""
    if question.culture == "native":
        return f"Native ({config.options['people'] or config.title})"
    named = f" ({question.foreign})" if question.culture == "foreign" and question.foreign else ""
    return f"{question.culture.capitalize()}{named}"


def _built(state: State, figures: Sequence[Figure]) -> Built:
    config, options = state.config, state.config.options
    dropped: list[Dropped] = _stale_candidates(state)
    questions = _usable(state, dropped)
    test = _test(state, questions)
    if not test:
        raise DataError(
            f"culture: no question is left for the test, of {len(dropped)} that were written, drafted or brought in."
        )
    check_drafts(sum(question.is_unchanged for question in questions), len(questions), options)
    for figure in figures:
        if figure.passes is False:
            raise DataError(
                f"culture: {figure.name}: {figure.value:.3f}. Expected {figure.floor:g} at least. Talk about the "
                "responses on which raters differ, and have them rated anew; or lower the options least_alpha and "
                "least_pearson, which the data card shows."
            )
    others = _near_and_others(state, test, questions, dropped)
    translations = {each.name: state.of("translate", each.name) for each in test} if options["translations"] else {}
    english = bool(translations) and all(translations.values())
    rated, test_rated = _rated(state, others, dropped), _rated(state, test, dropped)
    near = _near_rows(state, test, [question for question in questions if question not in test])
    answered = {row["question"] for row in rated}
    without = [question.name for question in others if question.text not in answered]
    dropped += [Dropped("write", name, "it isn't in the test, and none of its responses is rated") for name in without]
    dropped += _stale(state, [*test, *others], test)
    rows = []
    for question in test:
        translation = translations[question.name][0].values if english else {}
        rows.append(
            {
                "id": question.name,
                "question": question.text,
                "answer": question.answer,
                "culture_type": RELEASED_NAMES[question.category],  # type: ignore[index]
                "associated_culture": _label(question, config),
                "geographic_scope": _RELEASED_SCOPES[question.scope],  # type: ignore[index]
                "source": question.source,
                **{name: clean(translation[name]) for name in translation},
            }
        )
    tables = {_TEST: rows, _RATINGS: rated, _TEST_RATINGS: test_rated, _NEAR: near}
    sources = sorted({question.source for question in test} - {_BY_PEOPLE})
    return Built(
        tables={f"{name}.json": table for name, table in tables.items() if table},
        dropped=dropped,
        counts=_counts(state, test, questions, rated, near),
        marks=list(_marks(options, test, near)),
        facts={"people": options["people"], "english": english, "ratings": bool(rated), "made_from": sources},
    )


def _stale_candidates(state: State) -> list[Dropped]:
    names = Counter(map(_candidate_name, _candidates(state)[0]))
    repeats = (name for name, times in names.items() for _ in range(times - 1))
    return [Dropped("write", name, "inputs/candidates.csv has the question twice") for name in repeats]


def _near_and_others(
    state: State, test: Sequence[_Question], questions: Sequence[_Question], dropped: list[Dropped]
) -> list[_Question]:
    """Returns the questions outside of the test, without those much like one in it where these are to be dropped."""
    others = [question for question in questions if question not in test]
    if state.config.options["near_duplicates"] == "keep":
        return others
    near = {others[each.first].name for each in alike(others, [question.text for question in test])}
    dropped += [Dropped("write", name, "it is much like a question of the test") for name in sorted(near)]
    return [question for question in others if question.name not in near]


def _near_rows(state: State, test: Sequence[_Question], others: Sequence[_Question]) -> list[dict[str, Any]]:
    """Returns the questions of the test that are much like one of the others, or of CARE's own tests."""
    rows = []
    for where, texts in (("outside of the test", [each.text for each in others]), ("CARE", _published(state))):
        for each in alike(test, texts):
            question = test[each.first]
            rows.append(
                {
                    "id": question.name,
                    "question": question.text,
                    "like": texts[each.second],
                    "where": where,
                    "similarity": round(each.similarity, 3),
                }
            )
    return rows


def _rated(state: State, questions: Sequence[_Question], dropped: list[Dropped]) -> list[dict[str, Any]]:
    """Returns the rated responses in CARE's columns, one row per model; what nobody rated is added to the dropped."""
    rows = []
    for question in questions:
        for response in _responses(state, question):
            rating = _rating(state, response)
            if rating is None:
                dropped.append(Dropped("respond", response.row, "nobody has rated the response"))
                continue
            rows += [
                {
                    "question": question.text,
                    "answer": question.answer,
                    "response": response.text,
                    "human_rating": rating,
                    "source": question.source,
                    "cul_type": RELEASED_NAMES[question.category],  # type: ignore[index]
                    "associated_culture": _label(question, state.config),
                    "language": state.config.language,
                    "model": model or None,
                }
                for model in response.models
            ]
    return rows


def _stale(state: State, questions: Sequence[_Question], test: Sequence[_Question]) -> Iterator[Dropped]:
    """Yields responses, ratings and translations of questions that were changed or left out since."""
    current = {
        "respond": {_respond_name(question) for question in questions},
        "translate": {question.name for question in test},
    }
    responses = {response.row for question in questions for response in _responses(state, question)}
    current |= {"rate": responses, "rate_again": responses}
    for step, names in current.items():
        for row in state.entries.get(step, {}):
            if row not in names:
                yield Dropped(step, row, "its question was changed or left out")


def _counts(
    state: State,
    test: Sequence[_Question],
    questions: Sequence[_Question],
    rated: Sequence[Mapping[str, Any]],
    near: Sequence[Mapping[str, Any]],
) -> dict[str, int]:
    def people(step: str) -> int:
        rows = state.entries.get(step, {})
        return len({entry.person for row in rows for entry in state.of(step, row)})

    categories = Counter(question.category for question in test)
    responses = [response for question in questions for response in _responses(state, question)]
    return {
        "questions of the test": len(test),
        **{f"of them {RELEASED_NAMES[category]}": categories[category] for category in CATEGORIES},
        "sensitive": sum(question.moral for question in test),
        "with answers that change with time": sum(question.temporal for question in test),
        "other questions": len(questions) - len(test),
        "rated responses to other questions": len(rated),
        "responses rated twice": sum(bool(state.of("rate_again", response.row)) for response in responses),
        "near duplicates of the test, listed": len(near),
        **{f"people who did the step {step}": people(step) for step in ("write", "check", "rate", "rate_again")},
    }


def _marks(options: Mapping[str, Any], test: Sequence[_Question], near: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    drafts = [question for question in test if question.draft]
    models = ", ".join(sorted({question.draft[2] for question in drafts if question.draft}))
    if drafts:
        unchanged = sum(question.is_unchanged for question in drafts)
        yield (
            f"{len(drafts)} of {len(test)} questions were drafted by {models}, {unchanged} of which nobody changed; "
            "the score of a model that drafted is biased."
        )
    if not options["checkers"]:
        yield "Nobody but their writers checked the questions."
    if published := sum(row["where"] == "CARE" for row in near):
        yield f"{published} of {len(test)} questions are much like one of CARE's published tests."


# The benchmark


class CareCulture(Benchmark):
    """The questions about a culture that people added."""

    paper = "made like Guo et al., 2025"
    judge = "three rubrics, GPT-4o"

    def __init__(self, built: BuiltCulture) -> None:
        self.name, self.title, self.data = built.benchmark, f"CARE, {built.title}", "own culture"
        self.made_from, self.marks, self.task_files = built.facts["made_from"], built.marks, built.task_files
        self._built = built

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each way of asking for which the culture has what is needed."""
        built, people = self._built, self._built.facts["people"]
        lacking = {"roleplay": not people}
        return tuple(
            task_of(
                variant,
                name=f"{self.name}{variant.suffix}",
                title=f"{variant.title}, {built.title}",
                language=built.language,
                people=people,
                source=built.source(_TEST),
            )
            for variant in VARIANTS
            if not lacking.get(variant.prompt) and (built.facts["english"] or not variant.english)
        )

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of Figures 11-13."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of CARE, with the culture in the place of the languages."""
        built, native = self._built, {f"{self.name}_en": self.name}
        languages, places = {built.language: built.title}, {built.language: built.place}
        return report_of(self.name, self.title, languages, places, native)

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions."""
        return check_tables(self.name, data_folder, [table_check(self._built.source(_TEST), self._built.language)])


class RatedCareCulture(CareCulture, OffersHumanRatings):
    """A culture whose people rated responses, too."""

    def human_ratings(self) -> HumanRatings:
        """Returns the rated responses to the questions outside of the test."""
        return replace(
            HUMAN_RATINGS,
            about=f"the rated responses of {self.title}",
            source=self._built.source(_RATINGS),
            tests=(self.name,),
            published=(),
            published_in="",
        )


def benchmark_of(built: BuiltCulture) -> Benchmark:
    """Returns the benchmark of a built culture."""
    return RatedCareCulture(built) if built.facts["ratings"] else CareCulture(built)
