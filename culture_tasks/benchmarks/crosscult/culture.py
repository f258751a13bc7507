"""Further cultures of CrossCult-KIBench: how people make their cases.

There are two ways (section 3.4 and Appendix C.2). ``partition`` adds the question and the answer of a further partition
to the published cases. ``scenarios`` makes cases of scenarios and images that the group brings, with the questions and
answers of all of their partitions. The paper's texts are a model's; here people write or rewrite all of them, and
others check them, for which the paper has no step.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from culture_tasks.benchmarks import crosscult
from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.culture_entries import (
    ABOUT,
    CHOICES,
    DEFAULTS,
    FEWEST,
    HOLDS,
    VERDICTS,
    Item,
    Work,
    blank_sheets,
    check_of,
    check_options,
    drafter_of,
    edition_facts,
    partitions_of,
    published_items,
    step_of,
    written_partitions,
)
from culture_tasks.benchmarks.crosscult.draw import split_scenarios
from culture_tasks.benchmarks.crosscult.editions import PAPER, PARTITION, SCENARIOS, TABLE, Partition
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES, Part
from culture_tasks.benchmarks.culture_rows import check_drafts, json_object, nearest_texts, without_published
from culture_tasks.benchmarks.cultures import (
    Ask,
    Built,
    Config,
    CultureForm,
    Figure,
    FormOption,
    NothingBuiltError,
    SheetColumn,
    SheetRow,
    State,
    Step,
)
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.data.sources import local_file
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load

_FEWEST_CHECKED = 10  # answers with two checks below which alpha says nothing


# The steps

_STANCES = {"yes": "yes, or fine", "no": "no, or not fine", "depends": "it depends"}
_CHECKED = {"question": "Question", "answer": "Answer", "gloss": "Answer in English"}
_LONGEST = 300  # characters of one short sentence


def _column(
    name: str,
    title: str,
    about: str = "",
    kind: Literal["text", "long_text", "texts", "choice", "yes_no"] = "text",
    **more: Any,
) -> SheetColumn:
    return SheetColumn(name=name, title=title, about=about, kind=kind, **more)


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


def _scenario_columns(partitions: Sequence[Partition]) -> Iterator[SheetColumn]:
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
        rows=lambda state: [
            item.row({"What to look for": item.sheet.get("image_notes") or ""}, people=config.options["screeners"])
            for item in Work(state).images
        ],
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
        rows=lambda state: [
            item.row({"Questions like": item.sheet["question_style"]}, values=_draft(state, "question", item.name))
            for item in Work(state).screened
        ],
        ask=Ask(
            prompt=partial(_prompt, "qa_user.v1", asked, {"languages": "/".join(one.language for one in asked)}),
            read=partial(_read, {"question": PAPER["en"].fields["question"]}, True),
            decoding=Decoding(max_tokens=1024),
            version=f"qa_user.v1[{','.join(partition.code for partition in partitions)}]",
        ),
    )


def writing_steps(config: Config, partition: Partition) -> Iterator[Step]:
    """Yields the steps in which natives of one partition write, and check each other."""
    from culture_tasks.vocabulary import place

    where, language = place(partition.place).name, partition.language
    natives = f"native speakers of {language} from {where}"
    columns = {
        "question": (f"Question in {language}", _QUESTION),
        "answer": (f"Answer in {language}", f"What most people in {where} would say. One short sentence."),
        "gloss": ("Answer in English", "A faithful translation, for readers."),
    }
    rejecting = config.way == PARTITION  # nobody has looked at the image yet
    first = [_FITS] if rejecting else []
    more: dict[str, Any] = {"most": _LONGEST, "only_if": ("fits", True) if rejecting else None}
    yield Step(
        name=step_of("answer", config, partition),
        title=f"Question and answer in {language}",
        about=f"Ask the question in {language}: the meaning stays the same, the words are those of {where}. Then "
        f"answer it as most people in {where} would, in one short sentence with a clear stance where there is one. "
        "The answer isn't a translation of another culture's. Skip what can't be answered without a stereotype.",
        who=natives,
        source="CrossCult-KIBench, section 3.1 and Figure 8; the paper's are a model's",
        columns=[*first, *(_column(name, *columns[name], **more) for name in partition.fields)],
        rows=partial(_answer_rows, partition),
        ask=Ask(
            prompt=partial(
                _prompt, "qa_partition_user.v1", [partition], {"language": language, "culture": f"people in {where}"}
            ),
            read=partial(_read, partition.fields, rejecting),
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


def _answer_rows(partition: Partition, state: State) -> list[SheetRow]:
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


def _check_rows(partition: Partition, state: State) -> list[SheetRow]:
    work = Work(state)
    texts = ((item, text) for item in work.items if (text := work.text(partition, item.name)))
    return [
        item.row(
            {label: text.values.get(name, "") for name, label in _CHECKED.items()},
            name=check_of(text),
            not_for=frozenset({text.person}),
            people=state.config.options["checkers"],
        )
        for item, text in texts
    ]


def _draft(state: State, step: str, row: str) -> Mapping[str, Any]:
    return next((draft.values for draft in state.by_models(step, row)), {})


# Drafts by a model


def _prompt(name: str, partitions: Sequence[Partition], values: Mapping[str, str], row: SheetRow) -> Prompt:
    """Returns Figure 8, or the prompt of ours after it, with the fields of some partitions."""
    fields = [one.fields["question"] for one in partitions]
    fields += [field for one in partitions for kind, field in one.fields.items() if kind != "question"]
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


# The form


class CrossCultForm(CultureForm):
    """How a further culture of CrossCult-KIBench is made."""

    ways: Mapping[str, str] = {
        PARTITION: "a further partition: its natives answer the published cases",
        SCENARIOS: "own scenarios and images, with questions and answers for each partition",
    }
    paper = (
        "The paper's authors wrote 49 sheets of scenarios, took or generated images and screened them; a model wrote "
        "one question for each image and an answer for each partition (Appendix C.2). It reports no native annotators "
        "and no agreement. A partition is a language in a place, a proxy and no identity (Appendix A). A "
        "further partition is built with the published images and texts: share it only as their licences allow."
    )

    def options(self, way: str) -> Sequence[FormOption]:
        """Returns what a group decides beforehand."""
        found = {**DEFAULTS[way], **DEFAULTS[""]}
        return [
            FormOption(name=name, default=default, about=ABOUT[name], choices=CHOICES.get((way, name), ()))
            for name, default in found.items()
        ]

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps, in order; raises DataError for an option without sense."""
        check_options(config)
        first = scenario_steps(config) if config.way == SCENARIOS else ()
        return (*first, *(step for one in written_partitions(config) for step in writing_steps(config, one)))

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published cases that the project lacks."""
        if state.config.way == SCENARIOS:
            return {}
        missing = {identifier: item.name for identifier, item in published_items(state).items() if not item.image}
        files = map(Path, open_release(state.data_folder).raw.images(missing))
        return {f"{name}{_suffix(file)}": file for name, file in zip(missing.values(), files, strict=True)}

    def check(self, state: State) -> Iterator[str]:
        """Yields what is wrong with the system prompts and the images."""
        for partition in partitions_of(state.config):
            if not partition.system and partition.code not in PAPER.codes:
                yield (
                    f"culture.toml, option 'system_prompts': none in {partition.language}. Translate 'Please answer "
                    f"briefly in one sentence.' and add '{partition.code}: …'."
                )
        if state.config.way == SCENARIOS:
            yield from _problems_of_images(state)

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns how well natives agree, for which the paper has no numbers."""
        work = Work(state)
        figures: list[Figure] = []
        for one in written_partitions(state.config):
            step, needed = step_of("check", state.config, one), state.config.options["agree"]
            texts = (text for item in work.items if (text := work.text(one, item.name)))
            verdicts = [found for text in texts if (found := work.verdicts(one, text))]
            figures.append(_alpha(f"alpha (nominal), checks in {one.language}", step, verdicts))
            figures.append(_share("answers accepted", step, [found.count(HOLDS) >= needed for found in verdicts]))
        if state.config.way == SCENARIOS:
            looks = [item in work.screened for item in work.images if state.of("screen", item.name)]
            figures.append(_share("images kept", "screen", looks))
        return figures

    def build(self, state: State) -> Built:
        """Returns the raw cases that the entries make; raises NothingBuiltError where there are too few."""
        work = Work(state)
        try:
            return _build(work)
        except DataError as error:
            raise NothingBuiltError(str(error), work.dropped) from None


def _suffix(file: Path) -> str:
    from PIL import Image

    with Image.open(file) as image:
        return f".{(image.format or 'png').lower()}"


def _problems_of_images(state: State) -> Iterator[str]:
    from culture_tasks.data.images import broken_images
    from culture_tasks.data.tables import RowTable

    rows = {row.name for row in blank_sheets(state)}
    for name in state.images:
        if name.partition("/")[0] not in rows or name.count("/") != 1:
            yield f"images/{name}: not in the folder of a scenario. Move it into one, such as images/{min(rows)}."
    folder = state.folder / "images"
    yield from broken_images(RowTable(str(folder), [{}] * len(state.images)), state.images, folder)


# Agreement


def _alpha(name: str, step: str, verdicts: Sequence[Sequence[str]]) -> Figure:
    """Returns the alpha of those who checked an answer, with an interval by resampling answers."""
    import numpy as np

    from culture_tasks.metrics.rater_agreement import krippendorff_alpha
    from culture_tasks.metrics.resampling import LEAST_DEFINED, replicates

    codes = {verdict: float(code) for code, verdict in enumerate(VERDICTS)}
    both = [[codes[verdict] for verdict in found] for found in verdicts if len(found) > 1]
    if len(both) < _FEWEST_CHECKED:
        missing = f"{len(both)} answers have two checks; {_FEWEST_CHECKED} are needed"
        return Figure(name, step, np.nan, len(both), missing=missing)
    if len(distinct := set().union(*verdicts)) == 1:
        return Figure(name, step, np.nan, len(both), missing=f"every verdict is that {VERDICTS[distinct.pop()]}")
    ratings = np.array(list(zip_longest(*both, fillvalue=np.nan)))
    draws = replicates(lambda places: krippendorff_alpha(ratings[:, places], "nominal").value, range(len(both)))
    defined = draws[np.isfinite(draws)]
    enough = defined.size >= LEAST_DEFINED * draws.size
    low, high = np.quantile(defined, [0.025, 0.975]).tolist() if enough else (np.nan, np.nan)
    return Figure(name, step, krippendorff_alpha(ratings, "nominal").value, len(both), low, high)


def _share(name: str, step: str, values: Sequence[bool]) -> Figure:
    from culture_tasks.metrics.intervals import share_interval

    share = share_interval(values)
    missing = "" if values else "nobody has done it yet"
    return Figure(name, step, share.value, share.n, share.low, share.high, missing=missing)


# What is built


def _build(work: Work) -> Built:
    config = work.config
    items, near = _without_leaks(work, work.accepted())
    items = _with_parts(work, items)
    texts = [text for item in items for text in item.texts.values()]
    drafts = Counter(model for text in texts if (model := drafter_of(work.state, text)))
    check_drafts(drafts.total(), len(texts), config.options)
    _drop_the_rest(work, {item.name for item in items})
    marks = []
    if drafts:
        models = ", ".join(model.partition(":")[2] for model in sorted(drafts))
        marks.append(
            f"{drafts.total()} of {len(texts)} answers are drafts of a model ({models}) that natives confirmed without "
            "a change; don't compare this model by them."
        )
    if near:
        marks.append(f"{near} questions are much like ones of the published cases.")
    parts = {item.scenario: item.part for item in items}
    counts = {"cases": len(items), "scenarios": len(parts)}
    counts |= {f"scenarios for {part}": number for part, number in sorted(Counter(parts.values()).items())}
    counts |= {"answers by people": len(texts), "of them unchanged drafts": drafts.total()}
    partitions = partitions_of(config)
    return Built(
        tables={f"{TABLE}.json": [_row(partitions, item) for item in items]},
        images={_image_of(item): item.image for item in items},
        dropped=work.dropped,
        counts=counts,
        marks=marks,
        facts=edition_facts(config, set(parts.values())),
    )


class _Question(NamedTuple):
    name: str
    text: str


def _without_leaks(work: Work, items: list[Item]) -> tuple[list[Item], int]:
    """Leaves out items with a published question, word by word, and counts those with one that is much like one."""
    if work.config.way != SCENARIOS:  # whose questions have the meaning of published ones
        return items, 0
    published: list[str] = []
    folder = work.state.data_folder
    if folder is not None and local_file(PAPER.source, folder):
        cases = open_release(folder).raw.cases
        published = [sample.question for case in cases for sample in case.samples.values()]
    questions = [_Question(item.name, text.values["question"]) for item in items for text in item.texts.values()]
    left = Counter(question.name for question in without_published("question", questions, published, work.dropped))
    items = [item for item in items if left[item.name] == len(item.texts)]
    names = {item.name for item in items}
    questions = [question for question in questions if question.name in names]
    return items, len({questions[alike.first].name for alike in nearest_texts(questions, published)})


def _with_parts(work: Work, items: list[Item]) -> list[Item]:
    """Returns the items that can be paired, in order, with their parts: published ones, or a share of every topic."""
    options = work.config.options
    sizes = Counter(item.scenario for item in items)
    if work.config.way == SCENARIOS:
        topics = {item.scenario: item.topic for item in items if sizes[item.scenario] >= FEWEST}
        wanted: dict[Part, int] = {
            "sequential": options["sequential_scenarios"],
            "train": options["train_scenarios"],
        }
        if sum(wanted.values()) > len(topics):
            raise DataError(
                f"culture: {len(topics)} scenarios have {FEWEST} accepted cases, and 'sequential_scenarios' and "
                f"'train_scenarios' ask for {sum(wanted.values())}. Lower these, or make further cases."
            )
        drawn = split_scenarios(topics, wanted, random.Random(f"{work.config.seed}-split"))  # noqa: S311
        items = [replace(item, part=drawn.get(item.scenario, "single")) for item in items]
    parts = Counter({item.scenario: item.part for item in items if sizes[item.scenario] >= FEWEST}.values())
    left = []
    for item in sorted(items, key=lambda item: (item.scenario, item.name)):
        if sizes[item.scenario] < FEWEST:
            work.drop("build", item.name, "the only case of its scenario")
        elif parts[item.part] < FEWEST:
            work.drop("build", item.name, f"its scenario is the only one for {item.part}")
        else:
            left.append(item)
    if not any(item.part == "single" for item in left):
        raise DataError(
            f"culture: no case is left for the single-insert test. Expected at least {FEWEST} scenarios with "
            f"{FEWEST} accepted cases each; `culture-tasks culture agree` says what is missing."
        )
    return left


def _drop_the_rest(work: Work, names: set[str]) -> None:
    """Drops the rows with an entry that neither became a case nor have a reason yet."""
    used = {name.partition(".")[0] for name in names}
    known = names | {each.row for each in work.dropped}
    for row in work.sheets:
        if row not in used:
            work.drop("scenario", row, "no case of it is left")
    for step, rows in work.state.entries.items():
        for row in rows:
            if row not in known and row not in work.sheets and not step.startswith("check"):
                known.add(row)
                work.drop(step, row, "no row of the project any more")


def _row(partitions: Sequence[Partition], item: Item) -> dict[str, Any]:
    row = {"id": item.name, "scenario": item.scenario, "topic": item.topic, "split": item.part}
    row |= {"image": _image_of(item)} | ({"description": item.description} if item.description else {})
    for one in partitions:
        values = item.texts[one.code].values if one.code in item.texts else item.samples[one.code]._asdict()
        row |= {field: values[kind] for kind, field in one.fields.items() if values.get(kind)}
    return row


def _image_of(item: Item) -> str:
    """Returns the name of its image in the built culture."""
    suffix = Path(item.image).suffix
    return item.name if item.name.endswith(suffix) else f"{item.name}{suffix}"
