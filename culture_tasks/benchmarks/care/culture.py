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
    candidate_name,
    candidates,
    care_questions,
    draw_test,
    rating_of,
    respond_row,
    responses_to,
    usable_questions,
    written_questions,
)
from culture_tasks.benchmarks.care.culture_steps import CATEGORY_TITLES, OPTIONS, STEPS, draft_step
from culture_tasks.benchmarks.care.documents import CATEGORIES, SCOPES
from culture_tasks.benchmarks.culture_rows import check_drafts, clean, nearest_texts, negative_options
from culture_tasks.benchmarks.cultures import Built, Config, CultureForm, Dropped, Figure, Option, State, Step
from culture_tasks.errors import DataError

_TEST_RATINGS, _NEAR = "test_ratings", "near_duplicates"
_RELEASED_SCOPES: dict[str, str] = {scope: scope.replace("_", "-").capitalize() for scope in SCOPES}


# Agreement

_STATISTICS = {
    "krippendorff_alpha": ("Krippendorff's alpha", "0.84 to 0.92 (Table 2)"),
    "pearson": ("Pearson's r", "0.89 to 0.93 (Table 2)"),
    "spearman": ("Spearman's rho", "0.88 to 0.93 (Table 2)"),
    "kendall_tau_b": ("Kendall's tau", "0.71 to 0.77 (Table 2)"),
}
_LEAST_QUESTIONS = 5
"""Questions under which agreement isn't told: it would be any number."""


def _rated_twice(state: State, questions: Iterable[Question]) -> Iterator[tuple[Question, int, int]]:
    """Yields the question, the first and the second rating of each response that two people rated."""
    for question in questions:
        for response in responses_to(state, question):
            entries = state.of("rate", response.row)
            for second in state.of("rate_again", response.row) if entries else ():
                if second.person != entries[0].person:
                    yield question, entries[0].values["rating"], second.values["rating"]


def _agreement_of(pairs: Sequence[tuple[Question, int, int]], of: str, options: Mapping[str, Any]) -> Iterator[Figure]:
    from culture_tasks.metrics.rater_agreement import agreement

    clusters = [question.name for question, _, _ in pairs]
    first, second = [float(pair[1]) for pair in pairs], [float(pair[2]) for pair in pairs]
    found = agreement(first, second, clusters=clusters)
    floors = {"krippendorff_alpha": options["least_alpha"], "pearson": options["least_pearson"]}
    for name, (title, printed) in _STATISTICS.items():
        if of != "all" and name != "spearman":  # the one statistic of Table 11
            continue
        interval = found.estimates[name]  # type: ignore[index]
        missing = ""
        if found.clusters < _LEAST_QUESTIONS:
            missing = f"{found.clusters} questions were rated twice, and {_LEAST_QUESTIONS} are the least"
        elif interval.value != interval.value:
            missing = interval.reason or ""
        value = Figure(f"{title}, second raters", of, float("nan"), found.pairs, missing=missing)
        if not missing:
            value = value._replace(value=interval.value, low=interval.low, high=interval.high)
        yield (
            value._replace(printed=printed, floor=floors.get(name))
            if of == "all"
            else value._replace(printed="0.84 to 0.99 (Table 11)")
        )


def _agreement_of_labels(state: State) -> Iterator[Figure]:
    from culture_tasks.metrics.intervals import share_interval

    same: list[float] = []
    clusters: list[str] = []
    for question in written_questions(state, []):
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
        "ratings. Questions of other data sets may be rewritten, too: inputs/candidates.csv has the columns question, "
        "answer and source, of which the last two may be empty; name the data set as the source."
    )

    def options(self, way: str) -> Sequence[Option]:  # noqa: ARG002 - there is one way
        """Returns what a group decides beforehand."""
        return OPTIONS

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps; without drafts, checkers or translations, theirs are left out."""
        options = config.options
        steps = [draft_step(config), *STEPS]
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
        yield from candidates(state)[1]

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns the agreement of first and second raters (Tables 2 and 11), and of writers and checkers."""
        figures = list(_agreement_of_labels(state))
        pairs = list(_rated_twice(state, usable_questions(state, [])))
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


# What is built


def _label(question: Question, config: Config) -> str:
    """Returns the associated culture as the released data write it."""
    if question.culture == "native":
        return f"Native ({config.options['people'] or config.title})"
    named = f" ({question.foreign})" if question.culture == "foreign" and question.foreign else ""
    return f"{question.culture.capitalize()}{named}"


def _built(state: State, figures: Sequence[Figure]) -> Built:
    config, options = state.config, state.config.options
    dropped: list[Dropped] = _stale_candidates(state)
    questions = usable_questions(state, dropped)
    test = draw_test(state, questions)
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
    in_test = {question.name for question in test}
    beside = [question for question in questions if question.name not in in_test]
    others = _without_near(state, test, beside, dropped)
    translations = {each.name: state.of("translate", each.name) for each in test} if options["translations"] else {}
    english = bool(translations) and all(translations.values())
    rated, test_rated = _rated(state, others, dropped), _rated(state, test, dropped)
    near = _near_rows(state, test, beside)
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
                "culture_type": CATEGORY_TITLES[question.category],
                "associated_culture": _label(question, config),
                "geographic_scope": _RELEASED_SCOPES[question.scope],
                "source": question.source,
                **{name: clean(translation[name]) for name in translation},
            }
        )
    tables = {TEST: rows, RATINGS: rated, _TEST_RATINGS: test_rated, _NEAR: near}
    sources = sorted({question.source for question in test} - {BY_PEOPLE})
    return Built(
        tables={f"{name}.json": table for name, table in tables.items() if table},
        dropped=dropped,
        counts=_counts(state, test, questions, rated, near),
        marks=list(_marks(options, test, near)),
        facts={"people": options["people"], "english": english, "ratings": bool(rated), "made_from": sources},
    )


def _stale_candidates(state: State) -> list[Dropped]:
    names = Counter(map(candidate_name, candidates(state)[0]))
    repeats = (name for name, times in names.items() for _ in range(times - 1))
    return [Dropped("write", name, "inputs/candidates.csv has the question twice") for name in repeats]


def _without_near(
    state: State, test: Sequence[Question], others: list[Question], dropped: list[Dropped]
) -> list[Question]:
    """Returns the questions outside of the test, without those much like one in it where these are to be dropped."""
    if state.config.options["near_duplicates"] == "keep":
        return others
    near = {others[each.first].name for each in nearest_texts(others, [question.text for question in test])}
    dropped += [Dropped("write", name, "it is much like a question of the test") for name in sorted(near)]
    return [question for question in others if question.name not in near]


def _near_rows(state: State, test: Sequence[Question], others: Sequence[Question]) -> list[dict[str, Any]]:
    """Returns the questions of the test that are much like one of the others, or of CARE's own tests."""
    rows = []
    for where, texts in (("outside of the test", [each.text for each in others]), ("CARE", care_questions(state))):
        for each in nearest_texts(test, texts):
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


def _rated(state: State, questions: Sequence[Question], dropped: list[Dropped]) -> list[dict[str, Any]]:
    """Returns the rated responses in CARE's columns, one row per model; what nobody rated is added to the dropped."""
    rows = []
    for question in questions:
        for response in responses_to(state, question):
            rating = rating_of(state, response)
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
                    "cul_type": CATEGORY_TITLES[question.category],
                    "associated_culture": _label(question, state.config),
                    "language": state.config.language,
                    "model": model or None,
                }
                for model in response.models
            ]
    return rows


def _stale(state: State, questions: Sequence[Question], test: Sequence[Question]) -> Iterator[Dropped]:
    """Yields responses, ratings and translations of questions that were changed or left out since."""
    current = {
        "respond": {respond_row(question) for question in questions},
        "translate": {question.name for question in test},
    }
    responses = {response.row for question in questions for response in responses_to(state, question)}
    current |= {"rate": responses, "rate_again": responses}
    for step, names in current.items():
        for row in state.entries.get(step, {}):
            if row not in names:
                yield Dropped(step, row, "its question was changed or left out")


def _counts(
    state: State,
    test: Sequence[Question],
    questions: Sequence[Question],
    rated: Sequence[Mapping[str, Any]],
    near: Sequence[Mapping[str, Any]],
) -> dict[str, int]:
    def people(step: str) -> int:
        rows = state.entries.get(step, {})
        return len({entry.person for row in rows for entry in state.of(step, row)})

    categories = Counter(question.category for question in test)
    responses = [response for question in questions for response in responses_to(state, question)]
    return {
        "questions of the test": len(test),
        **{f"of them {CATEGORY_TITLES[category]}": categories[category] for category in CATEGORIES},
        "sensitive": sum(question.moral for question in test),
        "with answers that change with time": sum(question.temporal for question in test),
        "translated into English": sum(bool(state.of("translate", question.name)) for question in test),
        "other questions": len(questions) - len(test),
        "rated responses to other questions": len(rated),
        "responses rated twice": sum(bool(state.of("rate_again", response.row)) for response in responses),
        "near duplicates of the test, listed": len(near),
        **{f"people who did the step {step}": people(step) for step in ("write", "check", "rate", "rate_again")},
    }


def _marks(options: Mapping[str, Any], test: Sequence[Question], near: Sequence[Mapping[str, Any]]) -> Iterator[str]:
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
