"""The steps in which a culture like CARE is made, and what a group decides beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from culture_tasks.benchmarks.care.benchmark import SAMPLED
from culture_tasks.benchmarks.care.culture_questions import (
    Question,
    draw_by_category,
    draw_test,
    ideas_of,
    majorities,
    respond_row,
    responses_to,
    usable_questions,
    written_questions,
)
from culture_tasks.benchmarks.care.documents import CATEGORIES, RELEASED_NAMES
from culture_tasks.benchmarks.culture_rows import json_object, people_of, respond_step, writers
from culture_tasks.benchmarks.cultures import Ask, Column, Config, Option, Row, State, Step
from culture_tasks.benchmarks.interface import Decoding, Prompt
from culture_tasks.prompt_files import load as prompt_file

CATEGORY_ABOUT = {
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
CATEGORY_TITLES: dict[str, str] = {category: RELEASED_NAMES[category] for category in CATEGORIES}
_CATEGORY_LINES = "\n".join(f"{title}: {CATEGORY_ABOUT[name]}" for name, title in CATEGORY_TITLES.items())

_SCOPE_LABELS = {
    "sub_nationwide": "A part of a country, such as a city",
    "nationwide": "A whole country",
    "continent_wide": "Several countries",
    "worldwide": "The whole world",
}

CULTURE_LABELS = {
    "native": "Ours",
    "foreign": "Another particular culture",
    "general": "None in particular",
}

_FLAG_ABOUT = {
    "moral": ("Sensitive", "It touches a stereotype or could hurt, so that an answer needs care. Empty means no."),
    "temporal": ("Changes with time", "The right answer depends on the year in which one asks. Empty means no."),
}
_FLAGS = tuple(
    Column(name=name, title=title, kind="yes_no", about=about, required=False)
    for name, (title, about) in _FLAG_ABOUT.items()
)
_LABELS = (
    Column(name="category", title="Kind of question", kind="choice", about=_CATEGORY_LINES, choices=CATEGORY_TITLES),
    Column(name="scope", title="Where it holds", kind="choice", choices=_SCOPE_LABELS),
    Column(name="culture", title="Whose culture", kind="choice", choices=CULTURE_LABELS),
)

_NATIVES = "native speakers who have lived in the culture for more than 5 years (Figure 16)"
_WRITE = """Write questions about your culture, each with its answer, in your own language. Some rows hold a question \
that somebody brought in, or a draft of a model: rewrite it until you would ask and answer it like this yourself.

Only people of the culture know the answer of a good question, or care about it: it is about something that exists \
there alone, or is understood differently there. The population of a country, a riddle of numbers or a fact of \
biology isn't one. Skip a row that isn't about culture, or that you don't want to work on.

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


_TEXTS = (
    Column(name="question", title="Question", kind="long_text"),
    Column(name="answer", title="Answer", kind="long_text"),
)


# What a group decides


def _option(name: str, default: bool | float | str | Sequence[str], about: str, *choices: str) -> Option:
    return Option(name=name, default=default, about=about, choices=choices)


OPTIONS = (
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
        *CULTURE_LABELS,
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
    _option(
        "rate_references",
        False,
        "Whether the reference answer is one of the responses that are rated, as in the paper's data, instead of being "
        "shown beside them, as on its page (Figure 15).",
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


# Rows


def _write_rows(state: State) -> list[Row]:
    rows = []
    for name, idea in ideas_of(state).items():
        values = {"question": idea.question, "answer": idea.answer, "category": idea.category}
        title = "Draft of a model" if idea.model else "Question that was brought in"
        shown = {title: idea.question, "Its answer": idea.answer}
        rows.append(Row(name=name, shown=_filled(shown), values=_filled(values), people=writers(state, name)))
    numbers = range(1, state.config.options["questions_per_writer"] + 1)
    for person in (person for person, steps in state.config.people.items() if not steps or "write" in steps):
        names = [f"w-{person}-{number:03d}" for number in numbers]
        rows += [Row(name=name, writer=person, people=writers(state, name)) for name in names]
    return rows


def _filled(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _draft_rows(state: State) -> list[Row]:
    numbers = range(1, state.config.options["drafts_per_category"] + 1)
    return [
        Row(
            name=f"d-{category}-{number:03d}",
            shown={"Category": title, "What it is": CATEGORY_ABOUT[category], "Number": str(number)},
        )
        for category, title in CATEGORY_TITLES.items()
        for number in numbers
    ]


def _check_rows(state: State) -> list[Row]:
    least, rows = state.config.options["checkers"], []
    for question in written_questions(state, []):
        checks = [entry.values for entry in state.of("check", question.name)]
        related, category = majorities(question, checks)
        is_open = related is None or (related and category is None)
        rows.append(
            Row(
                name=question.name,
                shown={"Question": question.text, "Answer": question.answer},
                not_for=frozenset([question.writer]),
                people=len(checks) + 1 if is_open and least <= len(checks) < least + 2 else least,
            )
        )
    return rows


def _translate_rows(state: State) -> list[Row]:
    questions = draw_test(state, usable_questions(state, []))
    return [Row(name=each.name, shown={"Question": each.text, "Answer": each.answer}) for each in questions]


def _respond_rows(state: State) -> list[Row]:
    return [Row(name=respond_row(each), shown={"Question": each.text}) for each in usable_questions(state, [])]


def _rate_rows(state: State, questions: Iterable[Question] | None = None) -> list[Row]:
    is_shown, rows = not state.config.options["rate_references"], []
    for question in usable_questions(state, []) if questions is None else questions:
        reference = {"Reference answer": question.answer} if is_shown else {}
        for response in responses_to(state, question):
            shown = {"Question": question.text, **reference, "Response": response.text}
            rows.append(Row(name=response.row, shown=shown, group=question.name))
    return rows


def _second_rows(state: State) -> list[Row]:
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


def draft_step(config: Config) -> Step:
    """Returns the step in which a model drafts questions about the culture, in its language."""
    version = "culture_draft.v1"

    def prompt(row: Row) -> Prompt:
        from culture_tasks.vocabulary import language

        about = {"culture": config.title, "language": language(config.language).name}
        slots = {"category": "Category", "definition": "What it is", "number": "Number"}
        return Prompt(
            (
                prompt_file(__package__, version).fill(
                    {**about, **{slot: row.shown[label] for slot, label in slots.items()}}
                ),
            )
        )

    return Step(
        name="draft",
        title="Drafts of a model",
        about="A model drafts questions with their answers. They are ideas for the writers, and count only once a "
        "person has rewritten or confirmed them.",
        who="a model",
        source="not in the paper, in which people write all questions",
        columns=_TEXTS,
        rows=_draft_rows,
        ask=Ask(prompt=prompt, read=_read_draft, decoding=Decoding(max_tokens=1024, temperature=1.0), version=version),
        by_people=False,
    )


def _read_draft(reply: str) -> Mapping[str, Any]:
    draft = json_object(reply)
    for name in ("question", "answer"):
        if not isinstance(draft.get(name), str) or not draft[name].strip():
            raise ValueError(f"expected a text as {name!r}, found {draft.get(name)!r:.80}")
    return {"question": draft["question"], "answer": draft["answer"]}


_RATED = (Column(name="rating", title="Rating", kind="number", about="1: poor, 10: excellent", lowest=1, highest=10),)

STEPS = (
    Step(
        name="write",
        title="Writing",
        about=_WRITE,
        who=_NATIVES,
        source="sections 3.1 and 3.2, Figures 16 to 20",
        columns=(
            *_TEXTS,
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
    respond_step(
        __package__,
        "plain.v1",
        about="Models answer all questions, the question alone. Nine models did in the paper; ask several, strong and "
        "weak ones, so that there are good and bad responses.",
        source="section 3.2 and Appendix B: temperature 0.7, top-p 1, at most 1,024 tokens",
        rows=_respond_rows,
        decoding=SAMPLED,
        shows_images=False,
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
