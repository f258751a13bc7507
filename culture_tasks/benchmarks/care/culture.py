"""A further culture like CARE: how a group makes its questions and ratings, and what is built of them.

Section 3 and Appendix A of the paper say how its data were made. What they leave open is an option, or stands in the
table of deviations of ``docs/benchmarks/care.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from culture_tasks.benchmarks.care.built import RATINGS, TEST
from culture_tasks.benchmarks.care.culture_questions import (
    BY_PEOPLE,
    Question,
    candidates,
    care_questions,
    draw_test,
    respond_row,
    responses_to,
    usable_questions,
    written_questions,
)
from culture_tasks.benchmarks.care.culture_steps import CATEGORY_TITLES, OPTIONS, STEPS, draft_step
from culture_tasks.benchmarks.care.documents import SCOPES
from culture_tasks.benchmarks.culture_rows import (
    check_drafts,
    clean,
    figure_of,
    nearest_texts,
    negative_options,
    people_of,
    ratings_of,
    stale,
)
from culture_tasks.benchmarks.cultures import (
    Built,
    Config,
    CultureForm,
    Dropped,
    Figure,
    NothingBuiltError,
    Option,
    State,
    Step,
)

_RELEASED_SCOPES: dict[str, str] = {scope: scope.replace("_", "-").capitalize() for scope in SCOPES}

Rows = list[dict[str, Any]]


class CareForm(CultureForm):
    """How a further culture of CARE is made: section 3, with the guidelines of Figures 16 to 20."""

    ways: Mapping[str, str] = {"": "questions about one culture in its own language, and rated responses"}
    paper = (
        "CARE (Guo et al., 2025) has 150 test questions a culture, 30 of each of five categories, in the culture's own "
        "language; 2 to 5 native speakers wrote and selected them. Nine models answered 3,490 questions in all, the "
        "same people rated the responses, and 1 to 4 others rated those to 75 questions again. A mean over 150 "
        "questions is known to about 0.4 of ten points, over 75 to about 0.6, over the 30 of a category to about 0.9: "
        "75 is enough to place a model roughly, 150 to compare two. Nine responses to each of 150 questions are 1,350 "
        "ratings. Questions of other data sets may be rewritten, too: inputs/candidates.csv has the columns question, "
        "answer and source, of which the last two may be empty; name the data set as the source."
    )

    def options(self, way: str) -> Sequence[Option]:  # noqa: ARG002 - there is one way
        """Returns what a group decides beforehand."""
        return OPTIONS

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps; without drafts, checkers or translations, theirs are left out."""
        options = config.options
        needed = {
            "draft": options["drafts_per_category"],
            "check": options["checkers"],
            "translate": options["translations"],
            "rate_again": options["second_per_category"] and options["second_raters"],
        }
        return [step for step in (draft_step(config), *STEPS) if needed.get(step.name, True)]

    def check(self, state: State) -> Iterable[str]:
        """Yields what is wrong with the candidates and with the numbers among the options."""
        yield from negative_options(state)
        yield from candidates(state)[1]

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns the agreement of first and second raters (Tables 2 and 11), and of writers and checkers."""
        return [*_agreement_of_labels(state), *_agreement_of_raters(state)]

    def build(self, state: State) -> Built:
        """Returns the test, the rated responses to the other questions, and those to the test's.

        Raises:
            NothingBuiltError: If no question is left, ratings don't agree, or too many drafts are unchanged.
        """
        return _built(state, self.agreement(state))


FORM = CareForm()


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


def _agreement_of_raters(state: State) -> Iterator[Figure]:
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


def _agreement_of_labels(state: State) -> Iterator[Figure]:
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


def _built(state: State, figures: Sequence[Figure]) -> Built:
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
        like = {each.first for each in nearest_texts(_texts(others), _texts(test))}
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


def _texts(questions: Iterable[Question]) -> list[str]:
    return [question.text for question in questions]


def _label(question: Question, config: Config) -> str:
    """Returns the associated culture as the released data write it."""
    people = config.options["people"] or config.title
    named = {"native": people, "foreign": question.foreign}.get(question.culture)
    return question.culture.capitalize() + (f" ({named})" if named else "")


def _test_rows(state: State, test: Sequence[Question]) -> Rows:
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


def _near(test: Sequence[Question], where: str, texts: Sequence[str]) -> Rows:
    """Returns the questions of the test that are much like one of some texts."""
    return [
        {
            "id": test[each.first].name,
            "question": test[each.first].text,
            "like": texts[each.second],
            "where": where,
            "similarity": round(each.similarity, 3),
        }
        for each in nearest_texts(_texts(test), texts)
    ]


def _rated(state: State, questions: Sequence[Question], dropped: list[Dropped]) -> Rows:
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


def _marks(options: Mapping[str, Any], test: Sequence[Question], near: Rows) -> Iterator[str]:
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
