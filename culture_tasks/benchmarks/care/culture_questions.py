"""What a group has made of a culture like CARE: questions after checks, agreement, and the tables that are built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from culture_tasks.benchmarks.care.built import RATINGS, TEST
from culture_tasks.benchmarks.care.documents import CATEGORIES, RELEASED_NAMES, SCOPES, SOURCES
from culture_tasks.benchmarks.culture_rows import (
    ModelResponse,
    answer_row,
    check_drafts,
    clean,
    comparable,
    digest,
    figure_of,
    nearest_texts,
    people_of,
    published_questions,
    random_order,
    ratings_of,
    responses,
    stale,
    without_published,
)
from culture_tasks.benchmarks.cultures import MODEL, Built, Config, Dropped, Figure, NothingBuiltError, State
from culture_tasks.data.tables import OptionalLabel, OptionalText, TableRow, Text, read_file, usable_rows
from culture_tasks.errors import DataError

CATEGORY_TITLES: dict[str, str] = {category: RELEASED_NAMES[category] for category in CATEGORIES}
_RELEASED_SCOPES: dict[str, str] = {scope: scope.replace("_", "-").capitalize() for scope in SCOPES}

_Rows = list[dict[str, Any]]
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
    further = "; another person is to check it" if len(checks) < least + 2 else ""
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


def responses_to(state: State, question: Question) -> list[ModelResponse]:
    """Returns the responses to a question, people's reference among them where it is to be rated."""
    reference = question.answer if state.config.options["rate_references"] else ""
    return responses(state, respond_row(question), reference)


# Agreement

_STATISTICS = {
    "krippendorff_alpha": ("Krippendorff's alpha", "0.84 to 0.92", "least_alpha"),
    "pearson": ("Pearson's r", "0.89 to 0.93", "least_pearson"),
    "spearman": ("Spearman's rho", "0.88 to 0.93", None),
    "kendall_tau_b": ("Kendall's tau", "0.71 to 0.77", None),
}
"""Each statistic of Table 2, with its range there and the option that is its floor."""

_LEAST_QUESTIONS = 5
"""Questions under which agreement isn't told: it would be any number."""


def agreement_of_raters(state: State) -> Iterator[Figure]:
    """Yields the agreement of the first raters with the second ones (Tables 2 and 11)."""
    from culture_tasks.metrics.rater_agreement import agreement

    pairs: list[tuple[Question, int, int]] = []
    for question in usable_questions(state, []):
        for response in responses_to(state, question):
            one = state.of("rate", response.row)[:1]
            pairs += [
                (question, one[0].values["rating"], other.values["rating"])
                for other in state.of("rate_again", response.row)
                if one and other.person != one[0].person
            ]
    for category, title in {"": "all", **{name: name for name in CATEGORY_TITLES}}.items():
        of = [pair for pair in pairs if category in ("", pair[0].category)]
        names, first, second = [pair[0].name for pair in of], [pair[1] for pair in of], [pair[2] for pair in of]
        if not of:
            continue
        found = agreement(first, second, clusters=names)
        few = f"{found.clusters} questions were rated twice, and {_LEAST_QUESTIONS} are the least"
        missing = few if found.clusters < _LEAST_QUESTIONS else ""
        for name, (statistic, printed, floor) in _STATISTICS.items():
            if category and name != "spearman":  # the one statistic of Table 11
                continue
            yield figure_of(
                f"{statistic}, second raters",
                title,
                found.estimates[name]._replace(n=found.pairs),  # type: ignore[index]
                missing=missing,
                printed="0.84 to 0.99 (Table 11)" if category else f"{printed} (Table 2)",
                floor=state.config.options[floor] if floor and not category else None,
            )


def agreement_of_labels(state: State) -> Iterator[Figure]:
    """Yields how often writers and checkers name the same category."""
    from culture_tasks.metrics.intervals import share_interval

    same = [
        (question.name, float(entry.values["category"] == question.category))
        for question in written_questions(state, [])
        for entry in state.of("check", question.name)
        if entry.values["related"]
    ]
    if same:
        share = share_interval([value for _, value in same], [name for name, _ in same])
        yield figure_of("same category, writer and checker", "all", share)


# What is built


def build_culture(state: State, figures: Sequence[Figure]) -> Built:
    """Returns the test, the rated responses, and what was left out; raises NothingBuiltError where there is none."""
    options = state.config.options
    names = Counter(name for name, _ in candidates(state)[0])
    twice = "inputs/candidates.csv has the question twice"
    dropped = [Dropped("write", name, twice) for name in (names - Counter(set(names))).elements()]
    questions = usable_questions(state, dropped)
    test = draw_test(state, questions)
    if not test:
        raise NothingBuiltError(
            f"culture: no question is left for the test, of {len(dropped)} that were written, drafted or brought in.",
            dropped,
        )
    check_drafts(sum(question.is_unchanged for question in questions), len(questions), options, dropped)
    for figure in figures:
        if figure.passes is False:
            raise NothingBuiltError(
                f"culture: {figure.name}: {figure.value:.3f}. Expected {figure.floor:g} at least. Talk about the "
                "responses on which raters differ, and have them rated anew; or lower the options least_alpha and "
                "least_pearson, which the data card shows.",
                dropped,
            )
    others = [question for question in questions if question not in test]
    near = _near(test, "outside of the test", [question.text for question in others])
    near += _near(test, "CARE", care_questions(state))
    if options["near_duplicates"] == "drop":
        like = {each.first for each in nearest_texts(others, [question.text for question in test])}
        dropped += [
            Dropped("write", others[place].name, "it is much like a question of the test") for place in sorted(like)
        ]
        others = [question for place, question in enumerate(others) if place not in like]
    rated, test_rated = _rated(state, others, dropped), _rated(state, test, dropped)
    answered = {row["question"] for row in rated}
    unrated = "it isn't in the test, and none of its responses is rated"
    dropped += [Dropped("write", question.name, unrated) for question in others if question.text not in answered]
    responses = {response.row for question in (*test, *others) for response in responses_to(state, question)}
    current = {
        "respond": map(respond_row, (*test, *others)),
        "translate": [question.name for question in test],
        "rate": responses,
        "rate_again": responses,
    }
    dropped += stale(state, current)
    rows = _test_rows(state, test)
    tables = {TEST: rows, RATINGS: rated, "test_ratings": test_rated, "near_duplicates": near}
    categories = Counter(question.category for question in test)
    return Built(
        tables={f"{name}.json": table for name, table in tables.items() if table},
        dropped=dropped,
        counts={
            "questions of the test": len(test),
            **{f"of them {title}": categories[category] for category, title in CATEGORY_TITLES.items()},
            "sensitive": sum(question.moral for question in test),
            "with answers that change with time": sum(question.temporal for question in test),
            "translated into English": sum(bool(state.of("translate", question.name)) for question in test),
            "other questions": len(questions) - len(test),
            "rated responses to other questions": len(rated),
            "responses rated twice": sum(bool(state.of("rate_again", row)) for row in responses),
            "near duplicates of the test, listed": len(near),
            **{
                f"people who did the step {step}": len(people_of(state, step))
                for step in ("write", "check", "rate", "rate_again")
            },
        },
        marks=list(_marks(options, test, near)),
        facts={
            "people": options["people"],
            "english": "question_en" in rows[0],
            "ratings": bool(rated),
            "made_from": sorted({question.source for question in test} - {BY_PEOPLE}),
        },
    )


def _label(question: Question, config: Config) -> str:
    """Returns the associated culture as the released data write it."""
    people = config.options["people"] or config.title
    named = {"native": people, "foreign": question.foreign}.get(question.culture)
    return question.culture.capitalize() + (f" ({named})" if named else "")


def _test_rows(state: State, test: Sequence[Question]) -> _Rows:
    """Returns the test in CARE's columns, with the English ones where all of it is translated."""
    is_wanted = state.config.options["translations"]
    english = [state.of("translate", question.name) if is_wanted else [] for question in test]
    return [
        {
            "id": question.name,
            "question": question.text,
            "answer": question.answer,
            "culture_type": CATEGORY_TITLES[question.category],
            "associated_culture": _label(question, state.config),
            "geographic_scope": _RELEASED_SCOPES[question.scope],
            "source": question.source,
            **({name: clean(text) for name, text in entries[0].values.items()} if all(english) else {}),
        }
        for question, entries in zip(test, english, strict=True)
    ]


def _near(test: Sequence[Question], where: str, texts: Sequence[str]) -> _Rows:
    """Returns the questions of the test that are much like one of some texts."""
    return [
        {
            "id": test[each.first].name,
            "question": test[each.first].text,
            "like": texts[each.second],
            "where": where,
            "similarity": round(each.similarity, 3),
        }
        for each in nearest_texts(test, texts)
    ]


def _rated(state: State, questions: Sequence[Question], dropped: list[Dropped]) -> _Rows:
    """Returns the rated responses in CARE's columns, one row per model; what nobody rated is added to the dropped."""
    return [
        {
            "question": question.text,
            "answer": question.answer,
            "response": response.text,
            "human_rating": ratings[0],
            "source": question.source,
            "cul_type": CATEGORY_TITLES[question.category],
            "associated_culture": _label(question, state.config),
            "language": state.config.language,
            "model": model or None,
        }
        for question in questions
        for response, ratings in ratings_of(state, responses_to(state, question), dropped)
        for model in response.models
    ]


def _marks(options: Mapping[str, Any], test: Sequence[Question], near: _Rows) -> Iterator[str]:
    drafts = [question for question in test if question.draft]
    if drafts:
        models = ", ".join(sorted({question.draft for question in drafts}))
        yield (
            f"{len(drafts)} of {len(test)} questions were drafted by {models}, "
            f"{sum(question.is_unchanged for question in drafts)} of which nobody changed; the score of a model that "
            "drafted is biased."
        )
    if not options["checkers"]:
        yield "Nobody but their writers checked the questions."
    if published := sum(row["where"] == "CARE" for row in near):
        yield f"{published} of {len(test)} questions are much like one of CARE's published tests."
