"""The steps of both ways: what people are asked, and what a model may draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from culture_tasks.benchmarks import crosscult
from culture_tasks.benchmarks.crosscult.culture_entries import VERDICTS, Work, blank_sheets, step_of
from culture_tasks.benchmarks.crosscult.culture_options import PARTITION, SCENARIOS, partitions_of
from culture_tasks.benchmarks.crosscult.editions import PAPER, Partition
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES
from culture_tasks.benchmarks.culture_rows import json_object
from culture_tasks.benchmarks.cultures import Ask, Column, Config, Row, State, Step
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.prompt_files import load

_STANCES = {"yes": "yes, or fine", "no": "no, or not fine", "depends": "it depends"}
_LONGEST = 300  # characters of one short sentence


def _column(
    name: str,
    title: str,
    about: str = "",
    kind: Literal["text", "long_text", "texts", "choice", "yes_no"] = "text",
    **more: Any,
) -> Column:
    return Column(name=name, title=title, about=about, kind=kind, **more)


_FITS = _column(
    "fits",
    "The image clearly shows the scenario and has no visible error",
    "An impossible hand or a broken object is an error. With no, leave the rest empty: the case falls out.",
    "yes_no",
)
_QUESTION = (
    "One short sentence, as a person would ask in conversation, about this image without describing it. It stays "
    "inside one local point of view: it mentions neither other cultures nor a comparison. Don't ask what something "
    "means or represents."
)


def _scenario_columns(partitions: Sequence[Partition]) -> Iterator[Column]:
    yield _column("name", "Name of the scenario", "A type of situation, such as 'Wearing green hats'.", most=80)
    topics = {str(topic): name for topic, name in TOPIC_NAMES.items()}
    yield _column(
        "topic", "Topic", "A topic of the World Values Survey that an image can show.", "choice", choices=topics
    )
    about = "Its core content, without a culture: an image is compared with this."
    yield _column("description", "What every image of it shows", about, "long_text")
    for one in partitions:
        yield _column(f"stance_{one.code}", f"How it is judged: {one.language}", "", "choice", choices=_STANCES)
        about = "The context that a native knows."
        yield _column(f"context_{one.code}", f"Why it is judged so: {one.language}", about, "long_text")
    about = "For whom, when or where it doesn't hold, in each partition."
    yield _column("boundary", "Where the judgment stops", about, "long_text")
    yield _column("question_style", "Examples of questions", "", "long_text")
    yield _column("image_notes", "What to look for in images", "What may not be in them.", "long_text", required=False)
    yield _column("sources", "Public sources in which this was verified", "", "texts")


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
    suitable = "Nothing in it offends, endangers or identifies anybody who didn't agree."
    yield Step(
        name="screen",
        title="Images",
        about="Put the images of each scenario into images/s01, images/s02 and so on: photographs of your own or with "
        "a licence that allows it, or generated ones. People in them are adults who agreed, number plates and house "
        "numbers can't be read. Then look at each image and keep or reject it; nobody has to give a reason.",
        who="members of the group",
        source="CrossCult-KIBench, section 3.4 and Appendix C.2",
        columns=(
            _column("fits", "It clearly shows the scenario", kind="yes_no"),
            _column("artefacts", "It has a visible error", kind="yes_no"),
            _column("suitable", "It is suitable", suitable, "yes_no"),
            _column("decision", "Decision", kind="choice", choices={"keep": "keep", "reject": "reject"}),
        ),
        rows=_screen_rows,
    )
    has_english = any(one.code == "en" for one in partitions)
    asked = partitions if has_english else (PAPER["en"], *partitions)  # the question is read in English
    yield Step(
        name="question",
        title="Questions",
        about="Write one question about each image, in English, that natives of every partition can ask in their own "
        "language with the same meaning and answer from their own point of view.",
        who="people who know several of the partitions",
        source="CrossCult-KIBench, Figure 8; the paper's are a model's",
        columns=(
            _FITS,
            _column("question", "Question in English", _QUESTION, most=_LONGEST, only_if=("fits", True)),
        ),
        rows=_question_rows,
        ask=Ask(
            prompt=partial(_prompt, "qa_user.v1", asked, {"languages": "/".join(one.language for one in asked)}),
            read=partial(_read, {"question": PAPER["en"].question}, True),
            decoding=Decoding(max_tokens=1024),
            version=f"qa_user.v1[{','.join(partition.code for partition in partitions)}]",
        ),
    )


def writing_steps(config: Config, partition: Partition) -> Iterator[Step]:
    """Yields the steps in which natives of one partition write, and check each other."""
    from culture_tasks.vocabulary import place

    where, language = place(partition.place).name, partition.language
    natives = f"native speakers of {language} from {where}"
    answer_about = f"What most people in {where} would say. One short sentence."
    columns = {
        "question": (partition.question, f"Question in {language}", _QUESTION),
        "answer": (partition.answer, f"Answer in {language}", answer_about),
        "gloss": (partition.gloss, "Answer in English", "A faithful translation, for readers."),
    }
    fields = {name: field for name, (field, _, _) in columns.items() if field}
    rejecting = config.way == PARTITION  # nobody has looked at the image yet
    more: dict[str, Any] = {"most": _LONGEST} | ({"only_if": ("fits", True)} if rejecting else {})
    yield Step(
        name=step_of("answer", config, partition),
        title=f"Question and answer in {language}",
        about=f"Ask the question in {language}: the meaning stays the same, the words are those of {where}. Then "
        f"answer it as most people in {where} would, in one short sentence with a clear stance where there is one. "
        "The answer isn't a translation of another culture's. Skip what can't be answered without a stereotype.",
        who=natives,
        source="CrossCult-KIBench, section 3.1 and Figure 8; the paper's are a model's",
        columns=(*((_FITS,) if rejecting else ()), *(_column(name, *columns[name][1:], **more) for name in fields)),
        rows=partial(_answer_rows, partition),
        ask=Ask(
            prompt=partial(
                _prompt, "qa_partition_user.v1", [partition], {"language": language, "culture": f"people in {where}"}
            ),
            read=partial(_read, fields, rejecting),
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
            _column("verdict", "The answer", kind="choice", choices=VERDICTS),
            _column("comment", "What should be changed", kind="long_text", required=False),
        ),
        rows=partial(_check_rows, partition),
    )


# The rows of the steps


def _screen_rows(state: State) -> list[Row]:
    people = state.config.options["screeners"]
    return [
        item.row({"What to look for": item.sheet.get("image_notes") or ""}, people=people)
        for item in Work(state).images
    ]


def _question_rows(state: State) -> list[Row]:
    return [
        item.row({"Questions like": item.sheet["question_style"]}, values=_draft(state, "question", item.name))
        for item in Work(state).screened
    ]


def _answer_rows(partition: Partition, state: State) -> list[Row]:
    rows = []
    for item in Work(state).items:
        asked = {PAPER[code].language: sample.question for code, sample in item.samples.items()}
        if state.config.way == SCENARIOS:
            asked = {"English": item.question}
        values = _draft(state, step_of("answer", state.config, partition), item.name)
        if item.question and partition.code == "en":
            values = values or {"question": item.question}
        rows.append(item.row({f"Question in {language}": text for language, text in asked.items()}, values=values))
    return rows


def _check_rows(partition: Partition, state: State) -> list[Row]:
    work = Work(state)
    texts = ((item, text) for item in work.items if (text := work.text(partition, item.name)))
    return [
        item.row(
            {"Question": text.question, "Answer": text.answer, "Answer in English": text.gloss},
            name=text.checks,
            not_for=frozenset({text.person}),
            people=state.config.options["checkers"],
        )
        for item, text in texts
    ]


def _draft(state: State, step: str, row: str) -> Mapping[str, Any]:
    return next((draft.values for draft in state.by_models(step, row)), {})


# Drafts by a model


def _prompt(name: str, partitions: Sequence[Partition], values: Mapping[str, str], row: Row) -> Prompt:
    """Returns Figure 8, or the prompt of ours after it, with the fields of some partitions."""
    fields = [one.question for one in partitions]
    fields += [field for one in partitions for field in (one.answer, one.gloss) if field]
    known = {
        "fields": ",\n".join(f'    "{field}": "..."' for field in fields),
        "scenario_name": row.shown["Scenario"],
        "describe": row.shown.get("Description", ""),
        "image_file_name": row.image.rpartition("/")[2],
        "question": " / ".join(text for label, text in row.shown.items() if label.startswith("Question in ")),
    }
    user = load(crosscult.__name__, name).fill({**known, **values})
    return Prompt((Picture(), user), system=load(crosscult.__name__, "qa_system.v1").text)


def _read(fields: Mapping[str, str], rejecting: bool, reply: str) -> dict[str, Any]:
    """Reads a reply in the form of Figure 8: whether the image fits, where that is asked, and texts by column."""
    content = json_object(reply)
    if not {"is_match", "has_obvious_error"} <= content.keys():
        raise ValueError(f"expected is_match, has_obvious_error and qa, found {reply!r:.80}")
    if not content["is_match"] or content["has_obvious_error"]:
        if not rejecting:
            raise ValueError("the model says that the image doesn't fit or has an error")
        return {"fits": False}
    qa = content.get("qa")
    if not isinstance(qa, dict) or not all(isinstance(qa.get(field), str) for field in fields.values()):
        raise ValueError(f"expected qa with the texts {', '.join(fields.values())}, found {reply!r:.80}")
    texts = {column: " ".join(qa[field].split()) for column, field in fields.items()}
    return {"fits": True, **texts} if rejecting else texts
