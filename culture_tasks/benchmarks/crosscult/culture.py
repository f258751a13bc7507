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
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.culture_entries import (
    HOLDS,
    TABLE,
    VERDICTS,
    Item,
    Work,
    blank_sheets,
    published_items,
    step_of,
)
from culture_tasks.benchmarks.crosscult.culture_options import (
    FEWEST,
    PARTITION,
    SCENARIOS,
    check_options,
    edition_facts,
    options_of,
    partitions_of,
    written_partitions,
)
from culture_tasks.benchmarks.crosscult.culture_steps import scenario_steps, writing_steps
from culture_tasks.benchmarks.crosscult.draw import split_scenarios
from culture_tasks.benchmarks.crosscult.editions import PAPER, Partition
from culture_tasks.benchmarks.crosscult.vocabulary import Part
from culture_tasks.benchmarks.culture_rows import check_drafts, nearest_texts, without_published
from culture_tasks.benchmarks.cultures import Built, Config, CultureForm, Figure, NothingBuiltError, Option, State, Step
from culture_tasks.data.sources import local_file
from culture_tasks.errors import DataError

_FEWEST_CHECKED = 10  # answers with two checks below which alpha says nothing


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

    def options(self, way: str) -> Sequence[Option]:
        """Returns what a group decides beforehand."""
        return tuple(options_of(way))

    def steps(self, config: Config) -> Sequence[Step]:
        """Returns the steps, in order; raises DataError for an option without sense."""
        check_options(config)
        first = scenario_steps(config) if config.way == SCENARIOS else ()
        return (*first, *(step for one in written_partitions(config) for step in writing_steps(config, one)))

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published cases that the project hasn't got."""
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
    drafts = Counter(text.drafted_by for text in texts if text.drafted_by)
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
    questions = [_Question(item.name, text.question) for item in items for text in item.texts.values()]
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
        text = item.texts.get(one.code)
        sample = text or item.samples[one.code]
        row |= {one.question: sample.question, one.answer: sample.answer}
        row |= {one.gloss: text.gloss} if one.gloss and text and text.gloss else {}
    return row


def _image_of(item: Item) -> str:
    """Returns the name of its image in the built culture."""
    suffix = Path(item.image).suffix
    return item.name if item.name.endswith(suffix) else f"{item.name}{suffix}"
