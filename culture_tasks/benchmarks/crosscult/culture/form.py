"""The form: steps, checks of what the group brought in, and agreement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.culture.agreement import agreement_on, share_of
from culture_tasks.benchmarks.crosscult.culture.building import build
from culture_tasks.benchmarks.crosscult.culture.entries import (
    blank_sheets,
    drawn_cases,
    images_of,
    published_edition,
    screened_images,
    written_partitions,
)
from culture_tasks.benchmarks.crosscult.culture.options import (
    PARTITION,
    SCENARIOS,
    check_options,
    options_of,
    partitions_of,
)
from culture_tasks.benchmarks.crosscult.culture.steps import scenario_steps, writing_steps
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.cultures import Built, Config, CultureForm, Figure, Option, State, Step


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
        writing = [[*writing_steps(config, partition)] for partition in reversed(written_partitions(config))]
        return (*first, *(step for steps in writing for step in steps))

    def images(self, state: State) -> Mapping[str, Path]:
        """Returns the images of the published cases that the project hasn't got."""
        if state.config.way == SCENARIOS:
            return {}
        present = {Path(name).stem for name in state.images}
        missing = {identifier: item.name for identifier, item in drawn_cases(state).items() if item.name not in present}
        raw = open_release(state.data_folder, published_edition(state)).raw
        files = zip(missing.values(), map(Path, raw.images(missing)), strict=True)
        return {f"{name}{_suffix(file)}": file for name, file in files}

    def check(self, state: State) -> Iterator[str]:
        """Yields what is wrong with the system prompts and the images."""
        config = state.config
        for partition in partitions_of(config):
            if not partition.system and partition.code not in PAPER.codes:
                yield (
                    f"culture.toml, option 'system_prompts': none in {partition.language}. Translate 'Please answer "
                    f"briefly in one sentence.' and add '{partition.code}: …'."
                )
        if config.way == SCENARIOS:
            yield from _problems_of_images(state)

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns how well natives agree, for which the paper has no numbers."""
        figures: list[Figure] = []
        for partition in written_partitions(state.config):
            figures += agreement_on(state, partition)
        if state.config.way == SCENARIOS:
            items = images_of(state)[0]
            kept = {item.name for item in screened_images(state)[0]}
            looks = [float(item.name in kept) for item in items if state.of("screen", item.name)]
            figures.append(share_of("images kept", "screen", looks))
        return figures

    def build(self, state: State) -> Built:
        """Returns the raw cases that the entries make."""
        return build(state)


def _suffix(file: Path) -> str:
    from PIL import Image

    with Image.open(file) as image:
        return f".{(image.format or 'png').lower()}"


def _problems_of_images(state: State) -> Iterator[str]:
    from culture_tasks.data.images import broken_images
    from culture_tasks.data.tables import RowTable

    rows = {row.name for row in blank_sheets(state)}
    names = list(state.images)
    for name in names:
        if name.partition("/")[0] not in rows or name.count("/") != 1:
            yield f"images/{name}: not in the folder of a scenario. Move it into one, such as images/{min(rows)}."
    table = RowTable(str(state.folder / "images"), [{}] * len(names))
    yield from broken_images(table, names, state.folder / "images")
