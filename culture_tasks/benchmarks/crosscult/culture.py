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
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks import crosscult
from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.culture_entries import (
    FEWEST,
    HOLDS,
    VERDICTS,
    CrossCultEntries,
    Item,
    check_of,
    check_options,
    drafter_of,
    edition_facts,
    partitions_of,
    partitions_to_write,
    published_items,
    step_of,
)
from culture_tasks.benchmarks.crosscult.draw import split_scenarios
from culture_tasks.benchmarks.crosscult.editions import PAPER, PARTITION, SCENARIOS, TABLE, Partition
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES, Part
from culture_tasks.benchmarks.culture_forms import Ask, BuiltTables, Config, CultureForm, Figure, SheetRow, State, Step
from culture_tasks.benchmarks.culture_rows import json_object, nearest_texts, nominal_alpha
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.data.sources import local_file
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load

_FEWEST_CHECKED = 10  # answers with two checks below which alpha says nothing


# Drafts by a model


def _prompt(name: str, partitions: Sequence[Partition], values: Mapping[str, str], row: SheetRow) -> Prompt:
    """Returns Figure 8, or the prompt of ours after it, with the fields of some partitions."""
    fields = [partition.fields["question"] for partition in partitions]
    fields += [field for partition in partitions for kind, field in partition.fields.items() if kind != "question"]
    slots = {
        "fields": ",\n".join(f'    "{field}": "..."' for field in fields),
        "scenario_name": row.facts["Scenario"],
        "describe": row.facts.get("Description", ""),
        "image_file_name": row.image.rpartition("/")[2],
        "question": " / ".join(text for label, text in row.facts.items() if label.startswith("Question in ")),
    }
    user = load(crosscult.__name__, name).fill({**slots, **values})
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


# Rows, agreement and tables


class CrossCultWork(CrossCultEntries):
    """The rows on which people work, and the cases that come of them."""

    def problems(self) -> Iterator[str]:
        """Yields what is wrong with the system prompts and the images."""
        from culture_tasks.data.images import broken_images
        from culture_tasks.data.tables import RowTable

        for partition in partitions_of(self.config):
            if not partition.system and partition.code not in PAPER.codes:
                yield (
                    f"culture.toml, option 'system_prompts': none in {partition.language}. Translate 'Please answer "
                    f"briefly in one sentence.' and add '{partition.code}: …'."
                )
        if self.config.way != SCENARIOS:
            return
        rows, images = {row.name for row in self.blank_sheets()}, self.state.images
        for name in images:
            if name.partition("/")[0] not in rows or name.count("/") != 1:
                yield f"images/{name}: not in the folder of a scenario. Move it into one, such as images/{min(rows)}."
        folder = self.state.folder / "images"
        yield from broken_images(RowTable(str(folder), [{}] * len(images)), images, folder)

    def screen_rows(self) -> list[SheetRow]:
        """Returns the images of scenarios."""
        people = self.options["screeners"]
        return [
            item.row({"What to look for": item.sheet.get("image_notes") or ""}, people=people) for item in self.images
        ]

    def question_rows(self) -> list[SheetRow]:
        """Returns the images that everybody keeps."""
        return [
            item.row({"Questions like": item.sheet["question_style"]}, values=self._draft("question", item.name))
            for item in self.screened
        ]

    def answer_rows(self, partition: Partition) -> list[SheetRow]:
        """Returns the images about which natives of a partition write."""
        rows = []
        for item in self.items:
            questions = {PAPER[code].language: sample.question for code, sample in item.samples.items()}
            if self.config.way == SCENARIOS:
                questions = {"English": item.question}
            values = self._draft(step_of("answer", self.config, partition), item.name)
            if item.question and partition.code == "en":
                values = values or {"question": item.question}
            facts = {f"Question in {language}": text for language, text in questions.items()}
            rows.append(item.row(facts, values=values))
        return rows

    def check_rows(self, partition: Partition) -> list[SheetRow]:
        """Returns the texts of a partition's natives."""
        labels = {"question": "Question", "answer": "Answer", "gloss": "Answer in English"}
        return [
            item.row(
                {label: text.values.get(name, "") for name, label in labels.items()},
                name=check_of(text),
                not_for=frozenset({text.person}),
                people=self.options["checkers"],
            )
            for item in self.items
            if (text := self.text(partition, item.name))
        ]

    def _draft(self, step: str, row: str) -> Mapping[str, Any]:
        return next((draft.values for draft in self.state.model_entries(step, row)), {})

    def agreement(self) -> Iterator[Figure]:
        """Yields how well natives agree, and which share they accept."""
        for partition in partitions_to_write(self.config):
            step, quorum = step_of("check", self.config, partition), self.options["agree"]
            texts = (text for item in self.items if (text := self.text(partition, item.name)))
            verdicts = [labels for text in texts if (labels := self.verdicts(partition, text))]
            yield _alpha(f"alpha (nominal), checks in {partition.language}", step, verdicts)
            yield _share("answers accepted", step, [labels.count(HOLDS) >= quorum for labels in verdicts])
        if self.config.way == SCENARIOS:
            looks = [item in self.screened for item in self.images if self.state.entries_of("screen", item.name)]
            yield _share("images kept", "screen", looks)

    def tables(self) -> BuiltTables:
        """Returns the raw cases; raises DataError where there are too few."""
        config = self.config
        items, near = self._without_leaks(self.accepted())
        items = self._with_parts(items)
        texts = [text for item in items for text in item.texts.values()]
        drafts = Counter(model for text in texts if (model := drafter_of(self.state, text)))
        self.check_drafts(drafts.total(), len(texts))
        self._drop_the_rest({item.name for item in items})
        marks = []
        if drafts:
            models = ", ".join(model.partition(":")[2] for model in sorted(drafts))
            marks.append(
                f"{drafts.total()} of {len(texts)} answers are drafts of a model ({models}) that natives confirmed "
                "without a change; don't compare this model by them."
            )
        if near:
            marks.append(f"{near} questions are much like ones of the published cases.")
        parts = {item.scenario: item.part for item in items}
        counts = {"cases": len(items), "scenarios": len(parts)}
        counts |= {f"scenarios for {part}": number for part, number in sorted(Counter(parts.values()).items())}
        counts |= {"answers by people": len(texts), "of them unchanged drafts": drafts.total()}
        partitions = partitions_of(config)
        return BuiltTables(
            tables={f"{TABLE}.json": [_row(partitions, item) for item in items]},
            images={_image_of(item): item.image for item in items},
            dropped=self.dropped,
            counts=counts,
            marks=marks,
            facts=edition_facts(config, set(parts.values())),
        )

    def _without_leaks(self, items: list[Item]) -> tuple[list[Item], int]:
        """Leaves out items with a published question, word by word, and counts those with one that is much like one."""
        if self.config.way != SCENARIOS:  # whose questions have the meaning of published ones
            return items, 0
        published: list[str] = []
        folder = self.state.data_folder
        if folder is not None and local_file(PAPER.source, folder):
            cases = open_release(folder).raw.cases
            published = [sample.question for case in cases for sample in case.samples.values()]
        questions = [CaseQuestion(item.name, text.values["question"]) for item in items for text in item.texts.values()]
        new_counts = Counter(question.name for question in self.without_published("question", questions, published))
        items = [item for item in items if new_counts[item.name] == len(item.texts)]
        names = {item.name for item in items}
        questions = [question for question in questions if question.name in names]
        return items, len({questions[match.first].name for match in nearest_texts(questions, published)})

    def _with_parts(self, items: list[Item]) -> list[Item]:
        """Returns the items that can be paired, in order, with their parts: published ones, or drawn by topic."""
        options = self.options
        sizes = Counter(item.scenario for item in items)
        if self.config.way == SCENARIOS:
            topics = {item.scenario: item.topic for item in items if sizes[item.scenario] >= FEWEST}
            part_sizes: dict[Part, int] = {
                "sequential": options["sequential_scenarios"],
                "train": options["train_scenarios"],
            }
            if sum(part_sizes.values()) > len(topics):
                raise DataError(
                    f"culture: {len(topics)} scenarios have {FEWEST} accepted cases, and 'sequential_scenarios' and "
                    f"'train_scenarios' ask for {sum(part_sizes.values())}. Lower these, or make further cases."
                )
            parts_by_scenario = split_scenarios(topics, part_sizes, random.Random(f"{self.config.seed}-split"))  # noqa: S311
            items = [replace(item, part=parts_by_scenario.get(item.scenario, "single")) for item in items]
        parts = Counter({item.scenario: item.part for item in items if sizes[item.scenario] >= FEWEST}.values())
        cases = []
        for item in sorted(items, key=lambda item: (item.scenario, item.name)):
            if sizes[item.scenario] < FEWEST:
                self.drop("build", item.name, "the only case of its scenario")
            elif parts[item.part] < FEWEST:
                self.drop("build", item.name, f"its scenario is the only one for {item.part}")
            else:
                cases.append(item)
        if not any(item.part == "single" for item in cases):
            raise DataError(
                f"culture: no case is left for the single-insert test. Expected at least {FEWEST} scenarios with "
                f"{FEWEST} accepted cases each; `culture-tasks culture agree` says what is missing."
            )
        return cases

    def _drop_the_rest(self, names: set[str]) -> None:
        """Drops the rows with an entry that neither became a case nor have a reason yet."""
        used = {name.partition(".")[0] for name in names}
        known_rows = names | {omission.row for omission in self.dropped}
        for row in self.sheets:
            if row not in used:
                self.drop("scenario", row, "no case of it is left")
        for step, rows in self.state.entries.items():
            for row in rows:
                if row not in known_rows and row not in self.sheets and not step.startswith("check"):
                    known_rows.add(row)
                    self.drop(step, row, "no row of the project any more")


def _alpha(name: str, step: str, verdicts: Sequence[Sequence[str]]) -> Figure:
    """Returns the alpha of those who checked an answer."""
    from culture_tasks.metrics.intervals import Interval

    double_checks = [labels for labels in verdicts if len(labels) > 1]
    distinct = set().union(*verdicts)
    if len(double_checks) < _FEWEST_CHECKED:
        reason = f"{len(double_checks)} answers have two checks; {_FEWEST_CHECKED} are needed"
    elif len(distinct) == 1:
        reason = f"every verdict is that {VERDICTS[distinct.pop()]}"
    else:
        return Figure(name, step, nominal_alpha(double_checks, VERDICTS))
    return Figure(name, step, Interval(n=len(double_checks), reason=reason))


def _share(name: str, step: str, values: Sequence[bool]) -> Figure:
    from culture_tasks.metrics.intervals import Interval, share_interval

    return Figure(name, step, share_interval(values) if values else Interval(reason="nobody has done it yet"))


class CaseQuestion(NamedTuple):
    """A question of a case."""

    name: str
    text: str


def _row(partitions: Sequence[Partition], item: Item) -> dict[str, Any]:
    row = {"id": item.name, "scenario": item.scenario, "topic": item.topic, "split": item.part}
    row |= {"image": _image_of(item)} | ({"description": item.description} if item.description else {})
    for partition in partitions:
        code = partition.code
        values = item.texts[code].values if code in item.texts else item.samples[code]._asdict()
        row |= {field: values[kind] for kind, field in partition.fields.items() if values.get(kind)}
    return row


def _image_of(item: Item) -> str:
    """Returns the name of its image in the built culture."""
    suffix = Path(item.image).suffix
    return item.name if item.name.endswith(suffix) else f"{item.name}{suffix}"


# The form


def _suffix(file: Path) -> str:
    from PIL import Image

    with Image.open(file) as image:
        return f".{(image.format or 'png').lower()}"


class CrossCultForm(CultureForm):
    """How a further culture of CrossCult-KIBench is made."""

    work = CrossCultWork

    def steps(self, config: Config) -> Iterator[Step]:
        """Yields the steps, in order; raises DataError for an option without sense."""
        check_options(config)
        if config.way == SCENARIOS:
            yield from self._scenario_steps(config)
        for partition in partitions_to_write(config):
            yield from self._writing_steps(config, partition)

    def _scenario_steps(self, config: Config) -> Iterator[Step]:
        """Yields the steps before questions are answered, where the group brings its own scenarios."""
        partitions = partitions_of(config)
        topics = {str(topic): name for topic, name in TOPIC_NAMES.items()}
        scenario = self.step(config, "scenario", CrossCultWork.blank_sheets, choices={"topic": topics})
        judgments = [
            column
            for partition in partitions
            for column in self.columns(
                config, self.texts["judgment"], {"code": partition.code, "partition": partition.language}
            )
        ]
        yield replace(scenario, columns=(*scenario.columns[:3], *judgments, *scenario.columns[3:]))
        yield self.step(config, "screen", CrossCultWork.screen_rows)
        has_english = any(partition.code == "en" for partition in partitions)
        # The question is read in English.
        shown_partitions = partitions if has_english else (PAPER["en"], *partitions)
        languages = [partition.language for partition in shown_partitions]
        ask = Ask(
            prompt=partial(_prompt, "qa_user.v1", shown_partitions, {"languages": "/".join(languages)}),
            read=partial(_read, {"question": PAPER["en"].fields["question"]}, True),
            decoding=Decoding(max_tokens=1024),
            version=f"qa_user.v1[{','.join(partition.code for partition in partitions)}]",
        )
        yield self.step(config, "question", CrossCultWork.question_rows, ask=ask, by_people=True)

    def _writing_steps(self, config: Config, partition: Partition) -> Iterator[Step]:
        """Yields the steps in which natives of one partition write, and check each other."""
        from culture_tasks.vocabulary import place

        where, fields = place(partition.place).name, partition.fields
        slots = {"language": partition.language, "where": where, "gloss": fields.get("gloss", "")}
        values = {"language": partition.language, "culture": f"people in {where}"}
        ask = Ask(
            prompt=partial(_prompt, "qa_partition_user.v1", [partition], values),
            read=partial(_read, fields, config.way == PARTITION),  # else somebody has looked at the image before
            decoding=Decoding(max_tokens=512),
            version=f"qa_partition_user.v1[{partition.code}]",
        )
        step = partial(self.step, config, slots=slots, choices={"verdict": VERDICTS})
        answer, check = (step_of(kind, config, partition) for kind in ("answer", "check"))
        yield step(
            answer, partial(CrossCultWork.answer_rows, partition=partition), text="answer", ask=ask, by_people=True
        )
        yield step(check, partial(CrossCultWork.check_rows, partition=partition), text="check")

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published cases that the project lacks."""
        if state.config.way == SCENARIOS:
            return {}
        missing = {identifier: item.name for identifier, item in published_items(state).items() if not item.image}
        files = map(Path, open_release(state.data_folder).raw.images(missing))
        return {f"{name}{_suffix(file)}": file for name, file in zip(missing.values(), files, strict=True)}
