"""A further culture like CARE: the steps by which a group makes its questions and ratings, and what is built of them.

Section 3 and Appendix A of the paper say how its data were made. What they leave open is an option, or is in the
table of deviations of ``docs/benchmarks/care.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from culture_tasks.benchmarks.care.benchmark import RATINGS, SAMPLED, TEST
from culture_tasks.benchmarks.care.culture_questions import BY_PEOPLE, CareQuestions, CultureQuestion, candidates
from culture_tasks.benchmarks.care.documents import CATEGORIES, RELEASED_NAMES, RELEASED_SCOPES
from culture_tasks.benchmarks.culture_forms import Ask, BuiltTables, Config, CultureForm, Figure, SheetRow, Step
from culture_tasks.benchmarks.culture_rows import ask_by, clean, json_object, nearest_texts, people_of, read_response
from culture_tasks.benchmarks.interface import Decoding
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load as prompt_file

_Table = list[dict[str, Any]]

_STATISTICS = {
    "krippendorff_alpha": ("Krippendorff's alpha", "0.84 to 0.92", "least_alpha"),
    "pearson": ("Pearson's r", "0.89 to 0.93", "least_pearson"),
    "spearman": ("Spearman's rho", "0.88 to 0.93", None),
    "kendall_tau_b": ("Kendall's tau", "0.71 to 0.77", None),
}
"""Each statistic of Table 2, with its range there and the option that is its floor."""

_LEAST_QUESTIONS = 5
"""Questions under which agreement isn't told: it would be any number."""


# Drafts of a model


def _ask(config: Config) -> Ask:
    from culture_tasks.vocabulary import language

    labels = {"category": "Category", "definition": "What it is", "number": "Number"}
    of_culture = {"culture": config.title, "language": language(config.language).name}
    prompt = prompt_file(__package__, "culture_draft.v1")
    return ask_by(prompt, _read_draft, Decoding(max_tokens=1024, temperature=1.0), labels, values=of_culture)


def _read_draft(reply: str) -> Mapping[str, Any]:
    draft = json_object(reply)
    for name in ("question", "answer"):
        if not isinstance(draft.get(name), str) or not draft[name].strip():
            raise ValueError(f"expected a text as {name!r}, found {draft.get(name)!r:.80}")
    return {"question": draft["question"], "answer": draft["answer"]}


# Rows of the steps, agreement, and what is built


class CareWork(CareQuestions):
    """The usable entries of a culture like CARE, and the rows of its steps."""

    def problems(self) -> Sequence[str]:
        """Returns what is wrong with the candidates."""
        return candidates(self.state)[1]

    def draft_rows(self) -> list[SheetRow]:
        """Returns the questions that a model is to draft."""
        descriptions, numbers = FORM.texts["categories"], range(1, self.options["drafts_per_category"] + 1)
        return [
            SheetRow(
                name=f"d-{category}-{number:03d}",
                facts={"Category": title, "What it is": descriptions[category], "Number": str(number)},
            )
            for category, title in RELEASED_NAMES.items()
            for number in numbers
        ]

    def write_rows(self) -> list[SheetRow]:
        """Returns the ideas to be rewritten, and blanks for each writer."""
        rows = []
        for name, idea in self.ideas.items():
            values = {"question": idea.question, "answer": idea.answer, "category": idea.category}
            title = "Draft of a model" if idea.model else "Question that was brought in"
            facts = {title: idea.question, "Its answer": idea.answer}
            facts, values = ({key: text for key, text in texts.items() if text} for texts in (facts, values))
            rows.append(SheetRow(name=name, facts=facts, values=values, people=self.writers(name)))
        numbers = range(1, self.options["questions_per_writer"] + 1)
        blanks = {f"w-{person}-{number:03d}": person for person in self.config.doers("write") for number in numbers}
        return rows + [SheetRow(name=name, writer=person, people=self.writers(name)) for name, person in blanks.items()]

    def check_rows(self) -> list[SheetRow]:
        """Returns the questions, each for other people than its writer."""
        return [
            SheetRow(
                name=question.name,
                facts={"Question": question.text, "Answer": question.answer},
                not_for=frozenset([question.writer]),
                people=self.checkers(question),
            )
            for question in self.questions
        ]

    def translate_rows(self) -> list[SheetRow]:
        """Returns the questions of the test."""
        return [
            SheetRow(name=question.name, facts={"Question": question.text, "Answer": question.answer})
            for question in self.test
        ]

    def respond_rows(self) -> list[SheetRow]:
        """Returns the questions that models answer."""
        return [SheetRow(name=question.respond_row, facts={"Question": question.text}) for question in self.usable]

    def rate_rows(self, questions: Iterable[CultureQuestion] | None = None) -> list[SheetRow]:
        """Returns the responses to some questions, or to all."""
        is_shown, rows = not self.options["rate_references"], []
        for question in self.usable if questions is None else questions:
            reference = {"Reference answer": question.answer} if is_shown else {}
            for response in self.responses_to(question):
                facts = {"Question": question.text, **reference, "Response": response.text}
                rows.append(SheetRow(name=response.row, facts=facts, group=question.name))
        return rows

    def second_rows(self) -> list[SheetRow]:
        """Returns the responses that others rate again."""
        answered = [question for question in self.usable if self.responses_to(question)]
        curators = people_of(self.state, "write", "check")
        rows = []
        for question in self.draw(answered, self.options["second_per_category"], "second"):
            authors = {question.writer, *(entry.person for entry in self.state.entries_of("check", question.name))}
            for row in self.rate_rows([question]):
                first = {entry.person for entry in self.state.entries_of("rate", row.name)}
                not_for = frozenset(first | (curators if self.options["outside_raters"] else authors))
                rows.append(replace(row, not_for=not_for, people=self.options["second_raters"]))
        return rows

    def agreement(self) -> Iterator[Figure]:
        """Yields how often writers and checkers name the same category, and how raters agree."""
        from culture_tasks.metrics.intervals import share_interval

        matches = [
            (question.name, float(entry.values["category"] == question.category))
            for question in self.questions
            for entry in self.state.entries_of("check", question.name)
            if entry.values["related"]
        ]
        if matches:
            share = share_interval([value for _, value in matches], [name for name, _ in matches])
            yield Figure("same category, writer and checker", "all", share)
        yield from self._agreement_of_raters()

    def _agreement_of_raters(self) -> Iterator[Figure]:
        """Yields the agreement of the first raters with the second ones (Tables 2 and 11)."""
        from culture_tasks.metrics.intervals import Interval
        from culture_tasks.metrics.rater_agreement import agreement

        pairs: list[tuple[CultureQuestion, int, int]] = []
        for question in self.usable:
            for response in self.responses_to(question):
                for entry in self.state.entries_of("rate", response.row)[:1]:
                    repeats = self.state.entries_of("rate_again", response.row)
                    ratings = (repeat.values["rating"] for repeat in repeats if repeat.person != entry.person)
                    pairs += [(question, entry.values["rating"], rating) for rating in ratings]
        for category in ("", *CATEGORIES):
            category_pairs = [pair for pair in pairs if category in ("", pair[0].category)]
            if not category_pairs:
                continue
            questions, first, second = zip(*category_pairs, strict=True)
            result = agreement(first, second, clusters=[question.name for question in questions])
            few = f"{result.clusters} questions were rated twice, and {_LEAST_QUESTIONS} are the least"
            for name, (statistic, printed, floor) in _STATISTICS.items():
                if not category or name == "spearman":  # the one statistic of Table 11
                    number = result.estimates[name]._replace(n=result.pairs)  # type: ignore[index]
                    if result.clusters < _LEAST_QUESTIONS:
                        number = Interval(n=result.pairs, reason=few)
                    yield Figure(
                        f"{statistic}, second raters",
                        category or "all",
                        number,
                        printed="0.84 to 0.99 (Table 11)" if category else f"{printed} (Table 2)",
                        floor=self.options[floor] if floor and not category else None,
                    )

    def tables(self) -> BuiltTables:
        """Returns the test and the rated responses, or raises DataError where a threshold isn't reached."""
        names = Counter(name for name, _ in candidates(self.state)[0])
        for name in (names - Counter(set(names))).elements():
            self.drop("write", name, "inputs/candidates.csv has the question twice")
        questions, test = self.usable, self.test
        if not test:
            raise DataError(
                f"culture: no question is left for the test, of {len(self.dropped)} that were written, drafted or "
                "brought in."
            )
        self.check_drafts(sum(question.is_unchanged for question in questions), len(questions))
        for figure in CareWork(self.state).agreement():
            if figure.passes is False:
                raise DataError(
                    f"culture: {figure.name}: {figure.number.value:.3f}. Expected {figure.floor:g} at least. Talk "
                    "about the responses on which raters differ, and have them rated anew; or lower the options "
                    "least_alpha and least_pearson, which the data card shows."
                )
        remainder = [question for question in questions if question not in test]
        duplicates = _near_duplicates(test, "outside of the test", [question.text for question in remainder])
        duplicates += _near_duplicates(test, "CARE", self.care_questions)
        if self.options["near_duplicates"] == "drop":
            texts = [question.text for question in test]
            copies = {remainder[match.first].name for match in nearest_texts(remainder, texts)}
            for name in [question.name for question in remainder if question.name in copies]:
                self.drop("write", name, "it is much like a question of the test")
            remainder = [question for question in remainder if question.name not in copies]
        ratings, test_ratings = self._rating_rows(remainder), self._rating_rows(test)
        rated_questions = {row["question"] for row in ratings}
        for question in remainder:
            if question.text not in rated_questions:
                self.drop("write", question.name, "it isn't in the test, and none of its responses is rated")
        responses = {response.row for question in (*test, *remainder) for response in self.responses_to(question)}
        self.drop_stale(
            {
                "respond": [question.respond_row for question in (*test, *remainder)],
                "translate": [question.name for question in test],
                "rate": responses,
                "rate_again": responses,
            }
        )
        rows = self._test_rows()
        tables = {TEST: rows, RATINGS: ratings, "test_ratings": test_ratings, "near_duplicates": duplicates}
        categories = Counter(question.category for question in test)
        return BuiltTables(
            tables={f"{name}.json": table for name, table in tables.items() if table},
            dropped=self.dropped,
            counts={
                "questions of the test": len(test),
                **{f"of them {title}": categories[category] for category, title in RELEASED_NAMES.items()},
                "sensitive": sum(question.moral for question in test),
                "with answers that change with time": sum(question.temporal for question in test),
                "translated into English": sum(
                    bool(self.state.entries_of("translate", question.name)) for question in test
                ),
                "other questions": len(questions) - len(test),
                "rated responses to other questions": len(ratings),
                "responses rated twice": sum(bool(self.state.entries_of("rate_again", row)) for row in responses),
                "near duplicates of the test, listed": len(duplicates),
                **{
                    f"people who did the step {step}": len(people_of(self.state, step))
                    for step in ("write", "check", "rate", "rate_again")
                },
            },
            marks=list(self._marks(duplicates)),
            facts={
                "people": self.options["people"],
                "english": "question_en" in rows[0],
                "ratings": bool(ratings),
                "made_from": sorted({question.source for question in test} - {BY_PEOPLE}),
            },
        )

    def _label(self, question: CultureQuestion) -> str:
        """Returns the associated culture as the released data write it."""
        people = self.options["people"] or self.config.title
        name = {"native": people, "foreign": question.foreign}.get(question.culture)
        return question.culture.capitalize() + (f" ({name})" if name else "")

    def _test_rows(self) -> _Table:
        """Returns the test in CARE's columns, with the English ones where all of it is translated."""
        is_wanted = self.options["translations"]
        english = [self.state.entries_of("translate", question.name) if is_wanted else [] for question in self.test]
        return [
            {
                "id": question.name,
                "question": question.text,
                "answer": question.answer,
                "culture_type": RELEASED_NAMES[question.category],
                "associated_culture": self._label(question),
                "geographic_scope": RELEASED_SCOPES[question.scope],
                "source": question.source,
                **({name: clean(text) for name, text in entries[0].values.items()} if all(english) else {}),
            }
            for question, entries in zip(self.test, english, strict=True)
        ]

    def _rating_rows(self, questions: Sequence[CultureQuestion]) -> _Table:
        """Returns the rated responses in CARE's columns, one row per model."""
        return [
            {
                "question": question.text,
                "answer": question.answer,
                "response": response.text,
                "human_rating": ratings[0],
                "source": question.source,
                "cul_type": RELEASED_NAMES[question.category],
                "associated_culture": self._label(question),
                "language": self.config.language,
                "model": model or None,
            }
            for question in questions
            for response, ratings in self.rated(self.responses_to(question))
            for model in response.models
        ]

    def _marks(self, duplicates: _Table) -> Iterator[str]:
        if drafts := [question for question in self.test if question.draft]:
            models = ", ".join(sorted({question.draft for question in drafts}))
            yield (
                f"{len(drafts)} of {len(self.test)} questions were drafted by {models}, "
                f"{sum(question.is_unchanged for question in drafts)} of which nobody changed; the score of a model "
                "that drafted is biased."
            )
        if not self.options["checkers"]:
            yield "Nobody but their writers checked the questions."
        if published := sum(row["where"] == "CARE" for row in duplicates):
            yield f"{published} of {len(self.test)} questions are much like one of CARE's published tests."


def _near_duplicates(test: Sequence[CultureQuestion], where: str, texts: Sequence[str]) -> _Table:
    """Returns the questions of the test that are much like one of some texts."""
    return [
        {
            "id": test[match.first].name,
            "question": test[match.first].text,
            "like": texts[match.second],
            "where": where,
            "similarity": round(match.similarity, 3),
        }
        for match in nearest_texts(test, texts)
    ]


class CareForm(CultureForm):
    """How a further culture of CARE is made: section 3, with the guidelines of Figures 16 to 20."""

    work = CareWork

    def steps(self, config: Config) -> Iterator[Step]:
        """Yields the steps; without drafts, checkers or translations, theirs are left out."""
        options, descriptions = config.options, self.texts["categories"]
        lines = "\n".join(f"{title}: {descriptions[name]}".strip() for name, title in RELEASED_NAMES.items())
        step = partial(self.step, config, slots={"categories": lines}, choices={"category": RELEASED_NAMES})
        if options["drafts_per_category"]:
            yield step("draft", CareWork.draft_rows, ask=_ask(config))
        yield step("write", CareWork.write_rows)
        if options["checkers"]:
            yield step("check", CareWork.check_rows)
        if options["translations"]:
            yield step("translate", CareWork.translate_rows)
        ask = ask_by(prompt_file(__package__, "plain.v1"), read_response, SAMPLED, {"question": "Question"})
        yield step("respond", CareWork.respond_rows, ask=ask)
        yield step("rate", CareWork.rate_rows)
        if options["second_per_category"] and options["second_raters"]:
            yield step("rate_again", CareWork.second_rows)


FORM = CareForm()
