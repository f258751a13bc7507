"""The questions of a further culture like CARE: as people wrote, checked and rated them."""

from __future__ import annotations

from abc import ABC
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from culture_tasks.benchmarks.care.documents import CATEGORIES, SOURCES
from culture_tasks.benchmarks.culture_forms import MODEL, State
from culture_tasks.benchmarks.culture_rows import (
    ModelResponse,
    QuestionWork,
    answer_row,
    clean,
    comparable,
    digest,
    published_questions,
    random_order,
    responses,
)
from culture_tasks.data.tables import OptionalLabel, OptionalText, TableRow, Text, read_file, usable_rows
from culture_tasks.errors import DataError

_Label = TypeVar("_Label")

BY_PEOPLE = "written by native speakers"
"""Source of questions that nobody brought in."""

_FURTHER = 2
"""How many more people check a question on which the first ones don't agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CultureQuestion:
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

    @property
    def respond_row(self) -> str:
        """The row in which models answer it."""
        return answer_row(self.name, self.text)


class _Candidate(TableRow):
    """A row of ``inputs/candidates.csv``."""

    question: Text
    answer: OptionalText = None
    source: OptionalLabel = None


class Idea(NamedTuple):
    """A question that is to be rewritten: brought in by the group, or drafted by a model in a category."""

    question: str = ""
    answer: str = ""
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


class CareQuestions(QuestionWork, ABC):
    """The questions that people wrote, with what became of them."""

    @cached_property
    def ideas(self) -> dict[str, Idea]:
        """All questions that are to be rewritten, by the names of their rows."""
        ideas = dict(candidates(self.state)[0])
        for row in self.state.entries.get("draft", {}):
            for entry in self.state.model_entries("draft", row):
                values, model = entry.values, entry.person.removeprefix(MODEL)
                texts = clean(values["question"]), clean(values["answer"])
                ideas[f"{row}-{digest(model)[:6]}"] = Idea(*texts, category=row.split("-")[1], model=model)
        return ideas

    @cached_property
    def questions(self) -> list[CultureQuestion]:
        """The questions that people wrote or rewrote; ideas that nobody rewrote are dropped."""
        questions = []
        for name in dict.fromkeys((*self.ideas, *self.state.entries.get("write", {}))):
            entries, idea = self.state.entries_of("write", name), self.ideas.get(name, Idea())
            if entries:
                values = entries[0].values
                texts = clean(values["question"]), clean(values["answer"])
                questions.append(
                    CultureQuestion(
                        name=name,
                        text=texts[0],
                        answer=texts[1],
                        **{label: values[label] for label in ("category", "scope", "culture")},
                        moral=bool(values.get("moral")),
                        temporal=bool(values.get("temporal")),
                        foreign=clean(values.get("foreign")),
                        writer=entries[0].person,
                        source=idea.source,
                        draft=idea.model,
                        is_unchanged=bool(idea.model) and texts == (idea.question, idea.answer),
                    )
                )
            elif name in self.ideas:
                is_skipped = bool(self.state.skips("write", name))
                reason = "skipped by the person who was to rewrite it" if is_skipped else "nobody has rewritten it yet"
                self.drop("write", name, reason)
            for _ in entries[1:]:
                self.drop("write", name, "a second version; the first one counts")
        return questions

    def checkers(self, question: CultureQuestion) -> int:
        """Returns how many people have to check a question: more where writer and checkers don't agree."""
        least, checks = self.options["checkers"], self._checks(question)
        related, category = _majorities(question, checks)
        is_open = related is None or (related and category is None)
        return len(checks) + 1 if is_open and least <= len(checks) < least + _FURTHER else least

    def _checks(self, question: CultureQuestion) -> list[Mapping[str, Any]]:
        return [entry.values for entry in self.state.entries_of("check", question.name)]

    def _check_result(self, question: CultureQuestion) -> CultureQuestion | str:
        """Returns a question with the labels that most give it and its last correction, or why it is left out."""
        if not (least := self.options["checkers"]):
            return question
        checks = self._checks(question)[: least + _FURTHER]
        if len(checks) < least:
            return "too few people have checked it"
        related, category = _majorities(question, checks)
        further = "; another person is to check it" if len(checks) < least + _FURTHER else ""
        if related is None:
            return f"no majority says that it is about culture{further}"
        if not related:
            return "it isn't about culture, say most"
        if category is None:
            return f"no category has a majority{further}"
        checks = [values for values in checks if values["related"]]
        wrong = [values for values in checks if values["right"] is False]
        if any(not values.get("question") and not values.get("answer") for values in wrong):
            return "a checker says that it isn't right, without a correction"
        corrected = wrong[-1] if wrong else {}
        return replace(
            question,
            text=clean(corrected.get("question")) or question.text,
            answer=clean(corrected.get("answer")) or question.answer,
            is_unchanged=question.is_unchanged and not wrong,
            category=category,
            # Of labels that are named equally often, the writer's comes first.
            **{name: Counter(_votes(question, checks, name)).most_common(1)[0][0] for name in ("scope", "culture")},
            moral=question.moral or any(values.get("moral") for values in checks),
            temporal=question.temporal or any(values.get("temporal") for values in checks),
        )

    @cached_property
    def usable(self) -> list[CultureQuestion]:
        """The questions that can be asked; the others are dropped."""
        questions: dict[str, CultureQuestion] = {}
        for question in self.questions:
            checked = self._check_result(question)
            if isinstance(checked, str):
                reason = checked
            elif checked.moral and self.options["sensitive"] == "drop":
                reason = "it is sensitive"
            elif checked.temporal and self.options["time_bound"] == "drop":
                reason = "its answer changes with time"
            elif questions.setdefault(comparable(checked.text), checked) is not checked:
                reason = "an earlier row asks the same question"
            else:
                continue
            self.drop("write", question.name, reason)
        return self.without_published("write", questions.values(), self.care_questions)

    @cached_property
    def care_questions(self) -> list[str]:
        """The questions of CARE's own tests, as far as they are at hand."""
        return published_questions(SOURCES.values(), self.state.data_folder)

    def draw(self, questions: Iterable[CultureQuestion], most: int, draw: str) -> list[CultureQuestion]:
        """Draws so many questions of each category; they are in the order of the categories and of their names."""
        by_name = {question.name: question for question in questions}
        sample = []
        for category in CATEGORIES:
            names = [name for name, question in by_name.items() if question.category == category]
            sample += sorted(random_order(names, self.config.seed, draw)[:most])
        return [by_name[name] for name in sample]

    @cached_property
    def test(self) -> list[CultureQuestion]:
        """The test, drawn of the questions about the cultures that it is to ask about."""
        able = [question for question in self.usable if question.culture in self.options["test_cultures"]]
        return self.draw(able, self.options["test_per_category"], "test")

    def responses_to(self, question: CultureQuestion) -> list[ModelResponse]:
        """Returns the responses to a question, people's reference among them where it is to be rated."""
        reference = question.answer if self.options["rate_references"] else ""
        return responses(self.state, question.respond_row, reference)


def _majority(votes: Sequence[_Label]) -> _Label | None:
    """Returns what more than half of the people say."""
    (first, times), *_ = Counter(votes).most_common(1)
    return first if 2 * times > len(votes) else None


def _votes(question: CultureQuestion, checks: Sequence[Mapping[str, Any]], column: str) -> list[Any]:
    """Returns the writer's label and those of the people who checked it as a question about culture."""
    return [getattr(question, column), *(values[column] for values in checks if values["related"])]


def _majorities(question: CultureQuestion, checks: Sequence[Mapping[str, Any]]) -> tuple[bool | None, str | None]:
    """Returns whether it is about culture, and its category, as writer and checkers say; None without a majority."""
    related = _majority([True, *(values["related"] for values in checks)])
    return related, _majority(_votes(question, checks, "category"))
