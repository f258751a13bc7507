"""A further culture like CARE: what a group decides, and the steps by which it makes its questions and ratings.

Section 3 and Appendix A of the paper say how its data were made. What they leave open is an option, or stands in the
table of deviations of ``docs/benchmarks/care.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from culture_tasks.benchmarks.care.benchmark import SAMPLED
from culture_tasks.benchmarks.care.culture_questions import (
    CATEGORY_TITLES,
    Question,
    agreement_of_labels,
    agreement_of_raters,
    build_culture,
    candidates,
    draw_by_category,
    draw_test,
    ideas_of,
    majorities,
    respond_row,
    responses_to,
    usable_questions,
    written_questions,
)
from culture_tasks.benchmarks.culture_rows import (
    json_object,
    negative_options,
    options_of,
    people_of,
    respond_step,
    step_of,
    writers,
)
from culture_tasks.benchmarks.cultures import (
    Ask,
    Built,
    Config,
    CultureForm,
    Figure,
    FormOption,
    SheetColumn,
    SheetRow,
    State,
    Step,
)
from culture_tasks.benchmarks.interface import Decoding, Prompt
from culture_tasks.prompt_files import load as prompt_file

_CATEGORY_ABOUT = {
    "entities": "A fact about something that the culture has, with one right answer: who founded a state, where a "
    "drink comes from. No facts that any encyclopedia has of any country, such as its population.",
    "opinion": "An open question about something that the culture has, on which views differ: the main ideas of a "
    "thinker, whether people like a dish. The answer gives the views that are common.",
    "norms": "How people are expected to behave towards each other. They learn it on purpose, such as how to address "
    "elders.",
    "commonsense": "An everyday thing that people take for granted and never had to learn, such as whether one brings "
    "paper to a public toilet.",
    "literacy": "Proverbs, idioms, slang, literature and film. Translating a text isn't literacy.",
}
_CATEGORY_LINES = "\n".join(f"{title}: {_CATEGORY_ABOUT[name]}" for name, title in CATEGORY_TITLES.items())

_SCOPE_LABELS = {
    "sub_nationwide": "A part of a country, such as a city",
    "nationwide": "A whole country",
    "continent_wide": "Several countries",
    "worldwide": "The whole world",
}

_CULTURE_LABELS = {
    "native": "Ours",
    "foreign": "Another particular culture",
    "general": "None in particular",
}

_FLAG_ABOUT = {
    "moral": ("Sensitive", "It touches a stereotype or could hurt, so that an answer needs care. Empty means no."),
    "temporal": ("Changes with time", "The right answer depends on the year in which one asks. Empty means no."),
}
_FLAGS = tuple(
    SheetColumn(name=name, title=title, kind="yes_no", about=about, required=False)
    for name, (title, about) in _FLAG_ABOUT.items()
)
_LABELS = (
    SheetColumn(
        name="category", title="Kind of question", kind="choice", about=_CATEGORY_LINES, choices=CATEGORY_TITLES
    ),
    SheetColumn(name="scope", title="Where it holds", kind="choice", choices=_SCOPE_LABELS),
    SheetColumn(name="culture", title="Whose culture", kind="choice", choices=_CULTURE_LABELS),
)

_TEXTS = (
    SheetColumn(name="question", title="Question", kind="long_text"),
    SheetColumn(name="answer", title="Answer", kind="long_text"),
)


# Rows


def _write_rows(state: State) -> list[SheetRow]:
    rows = []
    for name, idea in ideas_of(state).items():
        values = {"question": idea.question, "answer": idea.answer, "category": idea.category}
        title = "Draft of a model" if idea.model else "Question that was brought in"
        shown = {title: idea.question, "Its answer": idea.answer}
        rows.append(SheetRow(name=name, shown=_filled(shown), values=_filled(values), people=writers(state, name)))
    numbers = range(1, state.config.options["questions_per_writer"] + 1)
    for person in (person for person, steps in state.config.people.items() if not steps or "write" in steps):
        names = [f"w-{person}-{number:03d}" for number in numbers]
        rows += [SheetRow(name=name, writer=person, people=writers(state, name)) for name in names]
    return rows


def _filled(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _draft_rows(state: State) -> list[SheetRow]:
    numbers = range(1, state.config.options["drafts_per_category"] + 1)
    return [
        SheetRow(
            name=f"d-{category}-{number:03d}",
            shown={"Category": title, "What it is": _CATEGORY_ABOUT[category], "Number": str(number)},
        )
        for category, title in CATEGORY_TITLES.items()
        for number in numbers
    ]


def _check_rows(state: State) -> list[SheetRow]:
    least, rows = state.config.options["checkers"], []
    for question in written_questions(state, []):
        checks = [entry.values for entry in state.of("check", question.name)]
        related, category = majorities(question, checks)
        is_open = related is None or (related and category is None)
        rows.append(
            SheetRow(
                name=question.name,
                shown={"Question": question.text, "Answer": question.answer},
                not_for=frozenset([question.writer]),
                people=len(checks) + 1 if is_open and least <= len(checks) < least + 2 else least,
            )
        )
    return rows


def _translate_rows(state: State) -> list[SheetRow]:
    questions = draw_test(state, usable_questions(state, []))
    return [SheetRow(name=each.name, shown={"Question": each.text, "Answer": each.answer}) for each in questions]


def _respond_rows(state: State) -> list[SheetRow]:
    return [SheetRow(name=respond_row(each), shown={"Question": each.text}) for each in usable_questions(state, [])]


def _rate_rows(state: State, questions: Iterable[Question] | None = None) -> list[SheetRow]:
    is_shown, rows = not state.config.options["rate_references"], []
    for question in usable_questions(state, []) if questions is None else questions:
        reference = {"Reference answer": question.answer} if is_shown else {}
        for response in responses_to(state, question):
            shown = {"Question": question.text, **reference, "Response": response.text}
            rows.append(SheetRow(name=response.row, shown=shown, group=question.name))
    return rows


def _second_rows(state: State) -> list[SheetRow]:
    options = state.config.options
    answered = [question for question in usable_questions(state, []) if responses_to(state, question)]
    chosen = draw_by_category(answered, options["second_per_category"], state.config.seed, "second")
    curators = people_of(state, "write", "check")
    rows = []
    for question in chosen:
        own = {question.writer, *(entry.person for entry in state.of("check", question.name))}
        for row in _rate_rows(state, [question]):
            first = {entry.person for entry in state.of("rate", row.name)}
            not_for = frozenset(first | (curators if options["outside_raters"] else own))
            rows.append(replace(row, not_for=not_for, people=options["second_raters"]))
    return rows


# Steps


def _steps(config: Config) -> Iterator[Step]:
    options = config.options
    rated = (
        SheetColumn(name="rating", title="Rating", kind="number", about="1: poor, 10: excellent", lowest=1, highest=10),
    )
    draft = "culture_draft.v1"

    def prompt(row: SheetRow) -> Prompt:
        from culture_tasks.vocabulary import language

        slots = {"category": "Category", "definition": "What it is", "number": "Number"}
        values = {slot: row.shown[label] for slot, label in slots.items()}
        values |= {"culture": config.title, "language": language(config.language).name}
        return Prompt((prompt_file(__package__, draft).fill(values),))

    ask = Ask(prompt=prompt, read=_read_draft, decoding=Decoding(max_tokens=1024, temperature=1.0), version=draft)
    write = (
        *_TEXTS,
        *_LABELS,
        SheetColumn(name="foreign", title="Which other culture", only_if=("culture", "foreign")),
        *_FLAGS,
    )
    check = (
        SheetColumn(name="related", title="About culture", kind="yes_no"),
        *(replace(column, only_if=("related", True)) for column in (*_LABELS, *_FLAGS)),
        SheetColumn(
            name="right",
            title="Question and answer are right as they are",
            kind="yes_no",
            only_if=("related", True),
        ),
        *(
            SheetColumn(name=name, title=title, kind="long_text", required=False, only_if=("right", False))
            for name, title in (("question", "Corrected question"), ("answer", "Corrected answer"))
        ),
    )
    translate = (
        SheetColumn(name="question_en", title="Question in English", kind="long_text"),
        SheetColumn(name="answer_en", title="Answer in English", kind="long_text"),
    )
    if options["drafts_per_category"]:
        yield step_of(__package__, "draft", _TEXTS, _draft_rows, ask=ask)
    yield step_of(__package__, "write", write, _write_rows)
    if options["checkers"]:
        yield step_of(__package__, "check", check, _check_rows)
    if options["translations"]:
        yield step_of(__package__, "translate", translate, _translate_rows)
    yield respond_step(__package__, "plain.v1", rows=_respond_rows, decoding=SAMPLED, shows_images=False)
    yield step_of(__package__, "rate", rated, _rate_rows)
    if options["second_per_category"] and options["second_raters"]:
        yield step_of(__package__, "rate_again", rated, _second_rows)


def _read_draft(reply: str) -> Mapping[str, Any]:
    draft = json_object(reply)
    for name in ("question", "answer"):
        if not isinstance(draft.get(name), str) or not draft[name].strip():
            raise ValueError(f"expected a text as {name!r}, found {draft.get(name)!r:.80}")
    return {"question": draft["question"], "answer": draft["answer"]}


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

    def options(self, way: str) -> Sequence[FormOption]:  # noqa: ARG002 - there is one way
        """Returns what a group decides beforehand."""
        return options_of(__package__)

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps; without drafts, checkers or translations, theirs are left out."""
        return list(_steps(config))

    def check(self, state: State) -> Iterable[str]:
        """Yields what is wrong with the candidates and with the numbers among the options."""
        yield from negative_options(state)
        yield from candidates(state)[1]

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns the agreement of first and second raters (Tables 2 and 11), and of writers and checkers."""
        return [*agreement_of_labels(state), *agreement_of_raters(state)]

    def build(self, state: State) -> Built:
        """Returns the test, the rated responses to the other questions, and those to the test's.

        Raises:
            NothingBuiltError: If no question is left, ratings don't agree, or too many drafts are unchanged.
        """
        return build_culture(state, self.agreement(state))


FORM = CareForm()
