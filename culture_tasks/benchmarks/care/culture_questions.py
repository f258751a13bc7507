"""What a group has made of a culture like CARE: its questions after their checks, draws of them, and responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from culture_tasks.benchmarks.care.documents import CATEGORIES, SOURCES
from culture_tasks.benchmarks.culture_rows import (
    Response,
    answer_row,
    clean,
    comparable,
    digest,
    published_questions,
    random_order,
    responses,
    without_published,
)
from culture_tasks.benchmarks.cultures import MODEL, Dropped, State
from culture_tasks.data.tables import OptionalLabel, OptionalText, TableRow, Text, read_file, usable_rows
from culture_tasks.errors import DataError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
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


BY_PEOPLE = "written by native speakers"


def candidates(state: State) -> tuple[list[_Candidate], list[str]]:
    """Returns the questions that the group brought in, and what is wrong with their table."""
    path = state.folder / "inputs" / "candidates.csv"
    if not path.is_file():
        return [], []
    try:
        rows, problems = usable_rows(read_file(path), _Candidate, {})
    except DataError as error:
        return [], [str(error)]
    return list(rows.values()), problems


def candidate_name(candidate: _Candidate) -> str:
    """Returns the row in which a question that was brought in is rewritten."""
    return f"c-{digest(clean(candidate.question))}"


def drafts(state: State) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """Yields row, category, values and model of each draft."""
    for row in state.entries.get("draft", {}):
        for entry in state.by_models("draft", row):
            yield row, row.split("-")[1], entry.values, entry.person.removeprefix(MODEL)


def draft_name(row: str, model: str) -> str:
    """Returns the row in which a model's draft is rewritten."""
    return f"{row}-{digest(model)[:6]}"


def written_questions(state: State, dropped: list[Dropped]) -> list[Question]:
    """Returns the questions that people wrote or rewrote, and adds to what is dropped the rows that nobody did."""
    brought_in = {candidate_name(each): each for each in candidates(state)[0]}
    drafted = {
        draft_name(row, model): (clean(values["question"]), clean(values["answer"]), model)
        for row, _, values, model in drafts(state)
    }
    questions = []
    for name in dict.fromkeys((*brought_in, *drafted, *state.entries.get("write", {}))):
        entries = state.of("write", name)
        if entries:
            values = entries[0].values
            source = brought_in[name].source if name in brought_in else None
            questions.append(
                Question(
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
                    source=source or BY_PEOPLE,
                    draft=drafted.get(name),
                )
            )
        elif state.skipped("write", name) and (name in brought_in or name in drafted):
            dropped.append(Dropped("write", name, "skipped by the person who was to rewrite it"))
        elif name in brought_in or name in drafted:
            dropped.append(Dropped("write", name, "nobody has rewritten it yet"))
        dropped += [Dropped("write", name, "a second version; the first one counts") for _ in entries[1:]]
    return questions


def _majority(votes: Sequence[_T]) -> _T | None:
    (first, times), *_ = Counter(votes).most_common(1)
    return first if 2 * times > len(votes) else None


def _votes(question: Question, checks: Sequence[Mapping[str, Any]], column: str) -> list[Any]:
    """Returns the writer's label and those of the people who checked it as a question about culture."""
    return [getattr(question, column), *(values[column] for values in checks if values["related"])]


def is_open(question: Question, checks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether writer and checkers leave open whether it is about culture, or of which category it is."""
    related = _majority([True, *(values["related"] for values in checks)])
    return related is None or (related and _majority(_votes(question, checks, "category")) is None)


def _checked(state: State, question: Question) -> Question | str:
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


def usable_questions(state: State, dropped: list[Dropped]) -> list[Question]:
    """Returns the questions that can be asked, and adds the others to what is dropped."""
    options, questions = state.config.options, []
    first: set[str] = set()
    for each in written_questions(state, dropped):
        checked = _checked(state, each)
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
        dropped.append(Dropped("write", each.name, reason))
    return without_published("write", questions, care_questions(state), dropped)


def care_questions(state: State) -> list[str]:
    """Returns the questions of CARE's own tests, as far as they are at hand."""
    return published_questions(SOURCES.values(), state.data_folder)


def draw_by_category(questions: Iterable[Question], most: int, seed: int, draw: str) -> list[Question]:
    """Draws so many questions of each category, and returns them in the order of the categories and of their names."""
    by_name = {question.name: question for question in questions}
    chosen = []
    for category in CATEGORIES:
        names = [name for name, question in by_name.items() if question.category == category]
        chosen += sorted(random_order(names, seed, draw)[:most])
    return [by_name[name] for name in chosen]


def draw_test(state: State, questions: Iterable[Question]) -> list[Question]:
    """Draws the test of the questions about the cultures that it is to ask about."""
    options = state.config.options
    able = [question for question in questions if question.culture in options["test_cultures"]]
    return draw_by_category(able, options["test_per_category"], state.config.seed, "test")


# Responses and their ratings


def respond_row(question: Question) -> str:
    """Returns the row in which models answer a question."""
    return answer_row(question.name, question.text)


def responses_to(state: State, question: Question) -> list[Response]:
    """Returns the responses to a question, people's reference among them where it is to be rated."""
    reference = question.answer if state.config.options["rate_references"] else ""
    return responses(state, respond_row(question), reference)


def rating_of(state: State, response: Response) -> int | None:
    """Returns the first rater's rating."""
    entries = state.of("rate", response.row)
    return entries[0].values["rating"] if entries else None
