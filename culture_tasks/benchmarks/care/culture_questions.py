"""What a group has made of a culture like CARE: its questions after their checks, draws of them, and responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

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

_Label = TypeVar("_Label", bound=Hashable)

BY_PEOPLE = "written by native speakers"
"""Source of questions that nobody brought in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, in the writer's words and labels, or after its check.

    Attributes:
        name: Name of its row in the step ``write``.
        foreign: Which culture it is about, where that is another one.
        draft: The model that drafted it; empty without one.
        is_unchanged: Whether it is a draft in which nobody has changed a word.
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
    draft: str
    is_unchanged: bool


# Writing


class _Candidate(TableRow):
    """A row of ``inputs/candidates.csv``."""

    question: Text
    answer: OptionalText = None
    source: OptionalLabel = None


class Idea(NamedTuple):
    """A question that is to be rewritten: brought in by the group, or drafted by a model in a category."""

    question: str
    answer: str
    source: str = BY_PEOPLE
    category: str = ""
    model: str = ""


def candidates(state: State) -> tuple[list[tuple[str, Idea]], list[str]]:
    """Returns the questions that the group brought in, each with its row's name, and what is wrong with their table."""
    path = state.folder / "inputs" / "candidates.csv"
    if not path.is_file():
        return [], []
    try:
        rows, problems = usable_rows(read_file(path), _Candidate, {})
    except DataError as error:
        return [], [str(error)]
    ideas = [Idea(clean(row.question), clean(row.answer), row.source or BY_PEOPLE) for row in rows.values()]
    return [(f"c-{digest(idea.question)}", idea) for idea in ideas], problems


def ideas_of(state: State) -> dict[str, Idea]:
    """Returns all questions that are to be rewritten, by the names of their rows."""
    ideas = dict(candidates(state)[0])
    for row in state.entries.get("draft", {}):
        for entry in state.by_models("draft", row):
            values, model = entry.values, entry.person.removeprefix(MODEL)
            texts = clean(values["question"]), clean(values["answer"])
            ideas[f"{row}-{digest(model)[:6]}"] = Idea(*texts, category=row.split("-")[1], model=model)
    return ideas


def written_questions(state: State, dropped: list[Dropped]) -> list[Question]:
    """Returns the questions that people wrote or rewrote, and adds to what is dropped the rows that nobody did."""
    ideas, questions = ideas_of(state), []
    for name in dict.fromkeys((*ideas, *state.entries.get("write", {}))):
        entries, idea = state.of("write", name), ideas.get(name, Idea("", ""))
        if not entries:
            reason = "skipped by the person who was to rewrite it"
            if name in ideas:
                dropped.append(
                    Dropped("write", name, reason if state.skipped("write", name) else "nobody has rewritten it yet")
                )
            continue
        values = entries[0].values
        text, answer = clean(values["question"]), clean(values["answer"])
        labels = {label: values[label] for label in ("category", "scope", "culture")}
        questions.append(
            Question(
                name=name,
                text=text,
                answer=answer,
                **labels,
                moral=bool(values.get("moral")),
                temporal=bool(values.get("temporal")),
                foreign=clean(values.get("foreign")),
                writer=entries[0].person,
                source=idea.source,
                draft=idea.model,
                is_unchanged=bool(idea.model) and (text, answer) == (idea.question, idea.answer),
            )
        )
        dropped += [Dropped("write", name, "a second version; the first one counts") for _ in entries[1:]]
    return questions


# Checks


def _majority(votes: Sequence[_Label]) -> _Label | None:
    """Returns what more than half of the people say."""
    (first, times), *_ = Counter(votes).most_common(1)
    return first if 2 * times > len(votes) else None


def _votes(question: Question, checks: Sequence[Mapping[str, Any]], column: str) -> list[Any]:
    """Returns the writer's label and those of the people who checked it as a question about culture."""
    return [getattr(question, column), *(values[column] for values in checks if values["related"])]


def majorities(question: Question, checks: Sequence[Mapping[str, Any]]) -> tuple[bool | None, str | None]:
    """Returns whether it is about culture, and its category, as writer and checkers say; None without a majority."""
    related = _majority([True, *(values["related"] for values in checks)])
    return related, _majority(_votes(question, checks, "category"))


def _checked(state: State, question: Question) -> Question | str:
    """Returns a question with the labels that most people give it and its last correction, or why it is left out."""
    if not (least := state.config.options["checkers"]):
        return question
    checks = [entry.values for entry in state.of("check", question.name)][: least + 2]
    if len(checks) < least:
        return "too few people have checked it"
    related, category = majorities(question, checks)
    if not related:
        return "no majority says that it is about culture" if related is None else "it isn't about culture, say most"
    if category is None:
        return "no category has a majority"
    checks = [values for values in checks if values["related"]]
    wrong = [values for values in checks if values["right"] is False]
    if any(not values.get("question") and not values.get("answer") for values in wrong):
        return "a checker says that it isn't right, without a correction"
    corrected = wrong[-1] if wrong else {}
    text, answer = clean(corrected.get("question")), clean(corrected.get("answer"))
    return replace(
        question,
        text=text or question.text,
        answer=answer or question.answer,
        is_unchanged=question.is_unchanged and not wrong,
        category=category,
        # Of labels that are named equally often, the writer's comes first.
        **{name: Counter(_votes(question, checks, name)).most_common(1)[0][0] for name in ("scope", "culture")},
        moral=question.moral or any(values.get("moral") for values in checks),
        temporal=question.temporal or any(values.get("temporal") for values in checks),
    )


def usable_questions(state: State, dropped: list[Dropped]) -> list[Question]:
    """Returns the questions that can be asked, and adds the others to what is dropped."""
    options = state.config.options
    questions: dict[str, Question] = {}
    for each in written_questions(state, dropped):
        checked = _checked(state, each)
        if isinstance(checked, str):
            reason = checked
        elif checked.moral and options["sensitive"] == "drop":
            reason = "it is sensitive"
        elif checked.temporal and options["time_bound"] == "drop":
            reason = "its answer changes with time"
        elif questions.setdefault(comparable(checked.text), checked) is not checked:
            reason = "an earlier row asks the same question"
        else:
            continue
        dropped.append(Dropped("write", each.name, reason))
    return without_published("write", questions.values(), care_questions(state), dropped)


def care_questions(state: State) -> list[str]:
    """Returns the questions of CARE's own tests, as far as they are at hand."""
    return published_questions(SOURCES.values(), state.data_folder)


# Draws, and responses


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


def respond_row(question: Question) -> str:
    """Returns the row in which models answer a question."""
    return answer_row(question.name, question.text)


def responses_to(state: State, question: Question) -> list[Response]:
    """Returns the responses to a question, people's reference among them where it is to be rated."""
    reference = question.answer if state.config.options["rate_references"] else ""
    return responses(state, respond_row(question), reference)
