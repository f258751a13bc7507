"""The steps of both ways: what people are asked, and what a model may draft."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from culture_tasks.benchmarks import crosscult
from culture_tasks.benchmarks.crosscult.culture.entries import (
    blank_sheets,
    images_of,
    items_of,
    row_name,
    screened_images,
    step_of,
    text_of,
    usable_scenarios,
)
from culture_tasks.benchmarks.crosscult.culture.options import SCENARIOS, partitions_of
from culture_tasks.benchmarks.crosscult.editions import PAPER, Partition
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES
from culture_tasks.benchmarks.culture_rows import json_object
from culture_tasks.benchmarks.cultures import Ask, Column, Config, Row, State, Step
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.prompt_files import load

HOLDS = "holds"
"""The verdict by which a native accepts an answer."""

VERDICTS = {
    HOLDS: "it holds",
    "too_general": "it is too general",
    "stereotype": "it is a stereotype",
    "wrong_language": "the language is wrong or unnatural",
    "rewrite": "it has to be rewritten",
}
_STANCES = {"yes": "yes, or fine", "no": "no, or not fine", "depends": "it depends"}
_LONGEST = 300  # characters of one short sentence


def _answer_rows(partition: Partition, state: State) -> list[Row]:
    step = step_of("answer", state.config, partition)
    rows = []
    for item in items_of(state).items:
        asked = {PAPER[code].language: sample.question for code, sample in item.samples.items()}
        asked = {"English": item.question} if item.question else asked
        shown = item.shown | {f"Question in {language}": text for language, text in asked.items()}
        drafts = state.by_models(step, item.name)
        values = dict(drafts[0].values) if drafts else {}
        if not values and item.question and partition.code == "en":
            values = {"question": item.question}
        rows.append(Row(name=item.name, shown=shown, image=item.image, values=values, group=row_name(item.scenario)))
    return rows


def _check_rows(partition: Partition, state: State) -> list[Row]:
    rows = []
    for item in items_of(state).items:
        text, _ = text_of(state, step_of("answer", state.config, partition), item.name)
        if text is None:
            continue
        shown = item.shown | {"Question": text.question, "Answer": text.answer, "Answer in English": text.gloss}
        rows.append(
            Row(
                name=text.checks,
                shown={label: shown_text for label, shown_text in shown.items() if shown_text},
                image=item.image,
                group=row_name(item.scenario),
                not_for=frozenset({text.person}),
                people=state.config.options["checkers"],
            )
        )
    return rows


def _screen_rows(state: State) -> list[Row]:
    notes = {str(one.values["name"]): str(one.values.get("image_notes") or "") for one in usable_scenarios(state)[0]}
    people = state.config.options["screeners"]
    return [
        Row(
            name=item.name,
            shown=item.shown | ({"What to look for": notes[item.scenario]} if notes[item.scenario] else {}),
            image=item.image,
            group=row_name(item.scenario),
            people=people,
        )
        for item in images_of(state)[0]
    ]


def _question_rows(state: State) -> list[Row]:
    styles = {str(one.values["name"]): str(one.values["question_style"]) for one in usable_scenarios(state)[0]}
    rows = []
    for item in screened_images(state)[0]:
        drafts = state.by_models("question", item.name)
        rows.append(
            Row(
                name=item.name,
                shown=item.shown | {"Questions like": styles[item.scenario]},
                image=item.image,
                values=dict(drafts[0].values) if drafts else {},
                group=row_name(item.scenario),
            )
        )
    return rows


_FITS = Column(
    name="fits",
    title="The image clearly shows the scenario and has no visible error",
    kind="yes_no",
    about="An impossible hand or a broken object is an error. With no, leave the rest empty: the case falls out.",
)
_QUESTION = (
    "One short sentence, as a person would ask in conversation, about this image without describing it. It stays "
    "inside one local point of view: it mentions neither other cultures nor a comparison. Don't ask what something "
    "means or represents."
)


def _question_column(language: str, **more: Any) -> Column:
    return Column(name="question", title=f"Question in {language}", about=_QUESTION, most=_LONGEST, **more)


def _sentence(name: str, title: str, about: str, **more: Any) -> Column:
    return Column(name=name, title=title, about=about, most=_LONGEST, **more)


def _scenario_columns(partitions: Sequence[Partition]) -> Iterator[Column]:
    yield Column(
        name="name", title="Name of the scenario", about="A type of situation, such as 'Wearing green hats'.", most=80
    )
    yield Column(
        name="topic",
        title="Topic",
        kind="choice",
        choices={str(topic): name for topic, name in TOPIC_NAMES.items()},
        about="A topic of the World Values Survey that an image can show.",
    )
    yield Column(
        name="description",
        title="What every image of it shows",
        kind="long_text",
        about="Its core content, without a culture: an image is compared with this.",
    )
    for partition in partitions:
        yield Column(
            name=f"stance_{partition.code}",
            title=f"How it is judged: {partition.language}",
            kind="choice",
            choices=_STANCES,
        )
        yield Column(
            name=f"context_{partition.code}",
            title=f"Why it is judged so: {partition.language}",
            kind="long_text",
            about="The context that a native knows.",
        )
    yield Column(
        name="boundary",
        title="Where the judgment stops",
        kind="long_text",
        about="For whom, when or where it doesn't hold, in each partition.",
    )
    yield Column(name="question_style", title="Examples of questions", kind="long_text")
    yield Column(
        name="image_notes",
        title="What to look for in images",
        kind="long_text",
        required=False,
        about="What may not be in them.",
    )
    yield Column(name="sources", title="Public sources in which this was verified", kind="texts")


def scenario_steps(config: Config) -> Iterator[Step]:
    """Yields the steps before questions are answered, where the group brings its own scenarios."""
    partitions = partitions_of(config)
    yield Step(
        name="scenario",
        title="Scenarios",
        about="A scenario is a type of situation that an image can show and that is judged differently in at least two "
        "of the partitions. Fill in one sheet for each, from public sources that you verify. For the other partitions, "
        "ask somebody who is at home there.",
        who="people who know the culture well; the paper's authors did it themselves",
        source="CrossCult-KIBench, section 3.4 and Appendix C.2, Figure 3",
        columns=tuple(_scenario_columns(partitions)),
        rows=blank_sheets,
    )
    yield Step(
        name="screen",
        title="Images",
        about="Put the images of each scenario into images/s01, images/s02 and so on: photographs of your own or with "
        "a licence that allows it, or generated ones. People in them are adults who agreed, number plates and house "
        "numbers can't be read. Then look at each image and keep or reject it; nobody has to give a reason.",
        who="members of the group",
        source="CrossCult-KIBench, section 3.4 and Appendix C.2",
        columns=(
            Column(name="fits", title="It clearly shows the scenario", kind="yes_no"),
            Column(name="artefacts", title="It has a visible error", kind="yes_no"),
            Column(
                name="suitable",
                title="It is suitable",
                kind="yes_no",
                about="Nothing in it offends, endangers or identifies anybody who didn't agree.",
            ),
            Column(name="decision", title="Decision", kind="choice", choices={"keep": "keep", "reject": "reject"}),
        ),
        rows=_screen_rows,
    )
    yield Step(
        name="question",
        title="Questions",
        about="Write one question about each image, in English, that natives of every partition can ask in their own "
        "language with the same meaning and answer from their own point of view.",
        who="people who know several of the partitions",
        source="CrossCult-KIBench, Figure 8; the paper's are a model's",
        columns=(_FITS, _question_column("English", only_if=("fits", True))),
        rows=_question_rows,
        ask=Ask(
            prompt=partial(_question_prompt, partitions),
            read=_read_question,
            decoding=Decoding(max_tokens=1024),
            version=f"qa_user.v1[{','.join(partition.code for partition in partitions)}]",
        ),
    )


def writing_steps(config: Config, partition: Partition) -> Iterator[Step]:
    """Yields the steps in which natives of one partition write, and check each other."""
    from culture_tasks.vocabulary import place

    where, language = place(partition.place).name, partition.language
    first = () if config.way == SCENARIOS else (_FITS,)
    more: dict[str, Any] = {"only_if": ("fits", True)} if first else {}
    natives = f"native speakers of {language} from {where}"
    gloss = [_sentence("gloss", "Answer in English", "A faithful translation, for readers.", **more)]
    yield Step(
        name=step_of("answer", config, partition),
        title=f"Question and answer in {language}",
        about=f"Ask the question in {language}: the meaning stays the same, the words are those of {where}. Then "
        f"answer it as most people in {where} would, in one short sentence with a clear stance where there is one. "
        "The answer isn't a translation of another culture's. Skip what can't be answered without a stereotype.",
        who=natives,
        source="CrossCult-KIBench, section 3.1 and Figure 8; the paper's are a model's",
        columns=(
            *first,
            _question_column(language, **more),
            _sentence(
                "answer", f"Answer in {language}", f"What most people in {where} would say. One short sentence.", **more
            ),
            *(gloss if partition.gloss else ()),
        ),
        rows=partial(_answer_rows, partition),
        ask=Ask(
            prompt=partial(_answer_prompt, partition, where),
            read=partial(_read_answer, partition, bool(first)),
            decoding=Decoding(max_tokens=512),
            version=f"qa_partition_user.v1[{partition.code}]",
        ),
    )
    yield Step(
        name=step_of("check", config, partition),
        title=f"Check of the answers in {language}",
        about=f"Judge the answer for {where}, not for your own opinion. It holds if most people there would agree. It "
        "is too general if it would hold anywhere, and a stereotype if it is what others say of the culture. Nobody "
        "checks what they wrote.",
        who=f"{natives}, other than the author",
        source="not in the paper, which reports no check by natives",
        columns=(
            Column(name="verdict", title="The answer", kind="choice", choices=VERDICTS),
            Column(name="comment", title="What should be changed", kind="long_text", required=False),
        ),
        rows=partial(_check_rows, partition),
    )


# Drafts by a model


def _fields(partitions: Iterable[Partition]) -> str:
    names = [partition.question for partition in partitions]
    for partition in partitions:
        names += [partition.answer, *([partition.gloss] if partition.gloss else [])]
    return ",\n".join(f'    "{name}": "..."' for name in names)


def _prompt(name: str, row: Row, **values: str) -> Prompt:
    known = {
        "scenario_name": row.shown["Scenario"],
        "describe": row.shown.get("Description", ""),
        "image_file_name": row.image.rpartition("/")[2],
    }
    user = load(crosscult.__name__, name).fill(known | values)
    return Prompt((Picture(), user), system=load(crosscult.__name__, "qa_system.v1").text)


def _question_prompt(partitions: Sequence[Partition], row: Row) -> Prompt:
    """Returns Figure 8 for some partitions; the one in English, which is read, is among them in any case."""
    if all(partition.code != "en" for partition in partitions):
        partitions = (PAPER["en"], *partitions)
    languages = "/".join(partition.language for partition in partitions)
    return _prompt("qa_user.v1", row, languages=languages, fields=_fields(partitions))


def _answer_prompt(partition: Partition, where: str, row: Row) -> Prompt:
    questions = [text for label, text in row.shown.items() if label.startswith("Question in ")]
    return _prompt(
        "qa_partition_user.v1",
        row,
        language=partition.language,
        culture=f"people in {where}",
        fields=_fields([partition]),
        question=" / ".join(questions),
    )


def _reply(reply: str) -> Mapping[str, Any] | None:
    """Returns the texts of a reply in the form of Figure 8; None where the image doesn't fit or has an error."""
    content = json_object(reply)
    try:
        if not content["is_match"] or content["has_obvious_error"]:
            return None
        return dict(content["qa"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"expected is_match, has_obvious_error and qa, found {reply!r:.80}") from None


def _texts(qa: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, str]:
    """Returns texts of a reply by column."""
    for name in fields.values():
        if not isinstance(qa.get(name), str):
            raise ValueError(f"no text {name!r} in qa")
    return {column: " ".join(qa[name].split()) for column, name in fields.items()}


def _read_question(reply: str) -> dict[str, Any]:
    qa = _reply(reply)
    return {"fits": False} if qa is None else {"fits": True, **_texts(qa, {"question": PAPER["en"].question})}


def _read_answer(partition: Partition, has_fits: bool, reply: str) -> dict[str, Any]:
    qa = _reply(reply)
    fields = {"question": partition.question, "answer": partition.answer}
    if partition.gloss:
        fields["gloss"] = partition.gloss
    if qa is None and not has_fits:
        raise ValueError("the model says that the image doesn't fit or has an error")
    fits = {"fits": qa is not None} if has_fits else {}
    return fits if qa is None else {**fits, **_texts(qa, fields)}
