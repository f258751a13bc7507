"""The draw: which scenarios are tested, and which other cases a case is paired with; as data that can be kept.

The paper gives the number of scenarios of each part and the scenario that each paired item comes from, not the item. So
the items are drawn by a fixed seed. A draw written to ``crosscult_draw.json`` in the user's data folder replaces the
default one, so that two laboratories can run the very same cases.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases
from culture_tasks.benchmarks.crosscult.vocabulary import (
    ORIGINAL_ORDER,
    PARTITIONS,
    TARGETS,
    TOPICS,
    Part,
    Partition,
    Topic,
)
from culture_tasks.data.tables import fingerprint
from culture_tasks.errors import DataError

FILE_NAME = "crosscult_draw.json"
_SCENARIOS, _TEST_SCENARIOS = 49, 10  # of the release, and of each test (Table 1)
_FEWEST = 2
_TESTS: tuple[Part, ...] = ("single", "sequential")
_ONLY_OTHER: Mapping[Partition, Partition] = {"zh": "ar", "ar": "zh"}

SplitBy = Literal["topic", "scenario"]
"""Whether each part gets its share of every topic, or scenarios are drawn whatever their topic."""

CrossLanguage = Literal["drawn", "english", "other"]
"""Partition of the cross-language locality item: one of the two others at random, English, or the other target."""

LocalityPool = Literal["part", "all"]
"""Where items of other scenarios come from: the scenarios of the same part of the data, or all of them."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DrawOptions(_Frozen):
    """What the paper leaves open.

    Attributes:
        seed: Seed of the whole draw.
        split_by: Whether each test gets its share of every topic.
        cross_language: Partition of the cross-language locality item.
        locality_pool: Where items of other scenarios come from.
    """

    seed: int = 0
    split_by: SplitBy = "topic"
    cross_language: CrossLanguage = "drawn"
    locality_pool: LocalityPool = "part"


class SinglePairing(_Frozen):
    """The paired items of one single-insert case (Appendix C.1.1).

    Attributes:
        case: The raw case.
        target: The inserted partition.
        generality: Another raw case of the same scenario.
        cross_language: Another partition, asked about the same image.
        cross_scenario: A raw case of another scenario.
    """

    case: str
    target: Partition
    generality: str
    cross_language: Partition
    cross_scenario: str


class ChainPairing(_Frozen):
    """The paired items of one sequential-insert chain (Appendix C.1.2).

    Attributes:
        case: The raw case.
        generality: Another raw case of the same scenario, for all three steps: the paper's item has one image.
        locality: A raw case of another scenario for each step.
    """

    case: str
    generality: str
    locality: tuple[str, str, str]


class Draw(_Frozen):
    """A scenario split and the pairing of all cases.

    Attributes:
        format: Version of the file's layout.
        data: Fingerprint of the raw cases that it was made for.
        options: How it was drawn.
        split: Part of each scenario.
        single: Pairings of the single-insert cases of ``train`` and ``single``, two for each raw case.
        sequential: Pairings of the chains of ``sequential``.
    """

    format: Literal[1] = 1
    data: str
    options: DrawOptions
    split: Annotated[Mapping[str, Part], Field(min_length=1)]
    single: tuple[SinglePairing, ...]
    sequential: tuple[ChainPairing, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Two runs compare only where this agrees."""
        return fingerprint([self.model_dump(mode="json")])

    def write(self, path: Path) -> None:
        """Writes the draw as JSON."""
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def make_draw(raw: RawCases, options: DrawOptions | None = None) -> Draw:
    """Splits the scenarios and pairs the cases.

    Each case is drawn for with a seed of its own, made of the seed and its id, so that a draw doesn't depend on the
    order of the rows.

    Args:
        raw: The raw cases.
        options: What the paper leaves open; None means the defaults.

    Raises:
        DataError: If there are too few scenarios or cases.
    """
    chosen = options or DrawOptions()
    split = _split_scenarios(raw.cases, chosen.seed, chosen.split_by)
    drawing = _Drawing(raw.cases, chosen, split)
    return Draw(
        data=raw.fingerprint,
        options=chosen,
        split=split,
        single=tuple(drawing.single()),
        sequential=tuple(drawing.sequential()),
    )


@dataclass(frozen=True)
class _Drawing:
    cases: Sequence[RawCase]
    options: DrawOptions
    split: Mapping[str, Part]

    def single(self) -> Iterator[SinglePairing]:
        for case in self.cases:
            if self.split[case.scenario] == "sequential":
                continue
            for target in TARGETS:
                rng = self._rng(case, target)
                yield SinglePairing(
                    case=case.id,
                    target=target,
                    generality=self._generality(case, rng),
                    cross_language=self._cross_language(target, rng),
                    cross_scenario=self._elsewhere(case, rng, 1)[0],
                )

    def sequential(self) -> Iterator[ChainPairing]:
        for case in self.cases:
            if self.split[case.scenario] == "sequential":
                rng = self._rng(case, "chain")
                generality = self._generality(case, rng)
                first, second, third = self._elsewhere(case, rng, len(ORIGINAL_ORDER))
                yield ChainPairing(case=case.id, generality=generality, locality=(first, second, third))

    def _rng(self, case: RawCase, purpose: str) -> random.Random:
        return random.Random(f"{self.options.seed}-{purpose}-{case.id}")  # noqa: S311

    def _generality(self, case: RawCase, rng: random.Random) -> str:
        members = self._by_scenario[case.scenario]
        if len(members) < 2:
            raise DataError(
                f"crosscult: scenario {case.scenario!r} has one case. Generality needs another one of the same "
                "scenario: add cases, or take the scenario out."
            )
        drawn = rng.randrange(len(members) - 1)
        return members[drawn + (drawn >= members.index(case.id))]

    def _cross_language(self, target: Partition, rng: random.Random) -> Partition:
        drawn: Partition = rng.choice([partition for partition in PARTITIONS if partition != target])
        return {"drawn": drawn, "english": PARTITIONS[0], "other": _ONLY_OTHER[target]}[self.options.cross_language]

    def _elsewhere(self, case: RawCase, rng: random.Random, count: int) -> list[str]:
        """Draws different cases of other scenarios; the same one again only where there are too few."""
        ids = self._ids_elsewhere[case.scenario]
        if not ids:
            raise DataError(
                f"crosscult: no scenario beside {case.scenario!r} in the part {self.split[case.scenario]!r}. Locality "
                "needs one: draw with locality_pool=all, or put more scenarios into the part."
            )
        return rng.sample(ids, count) if len(ids) >= count else rng.choices(ids, k=count)

    @cached_property
    def _by_scenario(self) -> dict[str, list[str]]:
        members: dict[str, list[str]] = {}
        for case in self.cases:
            members.setdefault(case.scenario, []).append(case.id)
        return {scenario: sorted(ids) for scenario, ids in sorted(members.items())}

    @cached_property
    def _ids_elsewhere(self) -> dict[str, list[str]]:
        """Returns for each scenario the cases of the other scenarios that its locality items come from."""
        within_part = self.options.locality_pool == "part"
        return {
            scenario: [
                identifier
                for other, ids in self._by_scenario.items()
                if other != scenario and (not within_part or self.split[other] == self.split[scenario])
                for identifier in ids
            ]
            for scenario in self._by_scenario
        }


def _split_scenarios(cases: Sequence[RawCase], seed: int, by: SplitBy) -> dict[str, Part]:
    """Returns the part of each scenario: the release's own where every case names one, else a draw by a fixed seed.

    Of 49 scenarios, 10 go to each test. Of another number, the same share does, and 2 at least: locality on other
    scenarios needs another one in the same test.

    Raises:
        DataError: If only some cases name a part, or there are too few scenarios to draw two tests.
    """
    released = {case.scenario: case.part for case in cases}
    given = {scenario: part for scenario, part in released.items() if part is not None}
    if len(given) == len(released):
        return given
    if given:
        lacking = next(scenario for scenario, part in released.items() if part is None)
        raise DataError(
            f"crosscult: {len(given)} of {len(released)} scenarios have a value in the column 'split', and {lacking!r} "
            "has none. Give every scenario one, or remove the column."
        )
    return _drawn_split({case.scenario: case.topic for case in cases}, seed, by)


def _drawn_split(topics: Mapping[str, Topic], seed: int, by: SplitBy) -> dict[str, Part]:
    quota = max(_FEWEST, round(len(topics) * _TEST_SCENARIOS / _SCENARIOS))
    if len(topics) < len(_TESTS) * quota:
        raise DataError(
            f"crosscult: {len(topics)} scenarios can't be split. Expected at least {len(_TESTS) * _FEWEST}, {_FEWEST} "
            "for each test; or a column 'split' that names the part of each scenario."
        )
    rng = random.Random(f"{seed}-split")  # noqa: S311
    left = sorted(topics)
    parts: dict[str, Part] = {}
    for part in _TESTS:
        drawn = _shares(quota, left, topics=topics, rng=rng) if by == "topic" else rng.sample(left, quota)
        parts |= dict.fromkeys(drawn, part)
        left = [scenario for scenario in left if scenario not in parts]
    return parts | dict.fromkeys(left, "train")


def _shares(quota: int, left: Sequence[str], *, topics: Mapping[str, Topic], rng: random.Random) -> list[str]:
    """Draws from each topic its share of the scenarios that are left, by largest remainder."""
    by_topic = {topic: [scenario for scenario in left if topics[scenario] == topic] for topic in TOPICS}
    exact = {topic: quota * len(members) / len(left) for topic, members in by_topic.items()}
    seats = {topic: int(share) for topic, share in exact.items()}
    by_remainder = sorted(TOPICS, key=lambda topic: (seats[topic] - exact[topic], TOPICS.index(topic)))
    for topic in by_remainder[: quota - sum(seats.values())]:
        seats[topic] += 1
    return [scenario for topic in TOPICS for scenario in rng.sample(by_topic[topic], seats[topic])]


def read_draw(path: Path, raw: RawCases) -> Draw:
    """Reads a draw and makes sure that it fits the data.

    Raises:
        DataError: If it isn't a draw, was made for other data, or pairs cases that don't go together.
    """
    try:
        draw = Draw.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "file"
        raise DataError(f"{path}, {place}: {first['msg']}. Make a draw with `culture-tasks data draw`.") from None
    if draw.data != raw.fingerprint:
        raise DataError(
            f"{path}: made for data with the fingerprint {draw.data}; the data here have {raw.fingerprint}. "
            "Use the data that it was made for, or make a draw of these with `culture-tasks data draw`."
        )
    problem = next(filter(None, _problems(draw, {case.id: case for case in raw.cases})), None)
    if problem is not None:
        raise DataError(f"{path}: {problem} Correct the file, or make a draw with `culture-tasks data draw`.")
    return draw


def _problems(draw: Draw, cases: Mapping[str, RawCase]) -> Iterator[str | None]:
    differing = sorted(draw.split.keys() ^ {case.scenario for case in cases.values()})
    if differing:
        yield f"the scenario {differing[0]!r} is in the data or in the split, and not in both."
    yield _coverage_problem(draw, cases)
    for pair in draw.single:
        yield _pairing_problem(cases, pair.case, generality=pair.generality, locality=(pair.cross_scenario,))
        if pair.cross_language == pair.target:
            yield f"case {pair.case!r} has its target {pair.target!r} for cross-language locality."
    for chain in draw.sequential:
        yield _pairing_problem(cases, chain.case, generality=chain.generality, locality=chain.locality)


def _coverage_problem(draw: Draw, cases: Mapping[str, RawCase]) -> str | None:
    """Says which case is paired twice, or not at all, or stands in the wrong part."""
    singles = [(pair.case, pair.target) for pair in draw.single]
    chains = [chain.case for chain in draw.sequential]
    part = {case.id: draw.split.get(case.scenario) for case in cases.values()}
    expected = {(case, target) for case in cases for target in TARGETS if part[case] != "sequential"}
    if sorted(singles) != sorted(expected):
        return "the single-insert pairings are not the Chinese and the Arabic target of each case outside 'sequential'."
    if sorted(chains) != sorted(case for case in cases if part[case] == "sequential"):
        return "the sequential-insert pairings are not one for each case of 'sequential'."
    return None


def _pairing_problem(
    cases: Mapping[str, RawCase], case: str, *, generality: str, locality: tuple[str, ...]
) -> str | None:
    """Says what is wrong with the items that a case is paired with, or None."""
    unknown = [identifier for identifier in (generality, *locality) if identifier not in cases]
    if unknown:
        return f"case {case!r} is paired with {unknown[0]!r}, which is no case."
    scenario = cases[case].scenario
    if generality == case or cases[generality].scenario != scenario:
        return f"case {case!r} has {generality!r} for generality, which is no other case of its scenario {scenario!r}."
    near = [identifier for identifier in locality if cases[identifier].scenario == scenario]
    return f"case {case!r} has {near[0]!r} of its own scenario {scenario!r} for locality." if near else None
