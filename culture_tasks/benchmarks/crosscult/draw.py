"""The draw: which scenarios are tested, and which other cases a case is paired with; as data that can be kept.

The paper says how many scenarios each part has and which scenario each paired item comes from, not which item it is. So
the items are drawn by a fixed seed. A draw written to ``crosscult_draw.json`` in the user's data folder is used in
place of the default one, so that two laboratories can run the very same cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases
from culture_tasks.benchmarks.crosscult.splitting import SplitBy
from culture_tasks.benchmarks.crosscult.vocabulary import TARGETS, Part, Partition
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.errors import DataError

FILE_NAME = "crosscult_draw.json"

CrossLanguage = Literal["drawn", "english", "other"]
"""Partition of the cross-language locality item: one of the two others by lot, English, or the other target."""

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

    @property
    def fingerprint(self) -> str:
        """Two runs compare only where this agrees."""
        return fingerprint([self.model_dump(mode="json")])

    def write(self, path: Path) -> None:
        """Writes the draw as JSON."""
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_draw(path: Path, raw: RawCases) -> Draw:
    """Reads a draw and makes sure that it fits the data.

    Raises:
        DataError: If it isn't a draw, was made for other data, or pairs cases that don't go together.
    """
    try:
        draw = Draw.model_validate_json(path.read_bytes())
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"]) or "file"
        raise DataError(f"{path}, {place}: {problem['msg']}. Make a draw with `culture-tasks data draw`.") from None
    if draw.data != raw.fingerprint:
        raise DataError(
            f"{path}: made for data with the fingerprint {draw.data}; the data here have {raw.fingerprint}. "
            "Use the data that it was made for, or make a draw of these with `culture-tasks data draw`."
        )
    _check(path, draw, {case.id: case for case in raw.cases})
    return draw


def _check(path: Path, draw: Draw, cases: Mapping[str, RawCase]) -> None:
    problem = next((text for text in _problems(draw, cases) if text is not None), None)
    if problem is not None:
        raise DataError(f"{path}: {problem} Correct the file, or make a draw with `culture-tasks data draw`.")


def _problems(draw: Draw, cases: Mapping[str, RawCase]) -> list[str | None]:
    found = [_split_problem(draw, cases), _coverage_problem(draw, cases)]
    if any(found):
        return found
    for pair in draw.single:
        found.append(pairing_problem(cases, pair.case, pair.generality, (pair.cross_scenario,)))
        if pair.cross_language == pair.target:
            found.append(f"case {pair.case!r} has its target {pair.target!r} for cross-language locality.")
    found += [pairing_problem(cases, chain.case, chain.generality, chain.locality) for chain in draw.sequential]
    return found


def _split_problem(draw: Draw, cases: Mapping[str, RawCase]) -> str | None:
    differing = sorted(draw.split.keys() ^ {case.scenario for case in cases.values()})
    return f"the scenario {differing[0]!r} is in the data or in the split, and not in both." if differing else None


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


def pairing_problem(cases: Mapping[str, RawCase], case: str, generality: str, locality: tuple[str, ...]) -> str | None:
    """Says what is wrong with the items that a case is paired with, or None."""
    unknown = [identifier for identifier in (generality, *locality) if identifier not in cases]
    if unknown:
        return f"case {case!r} is paired with {unknown[0]!r}, which is no case."
    scenario = cases[case].scenario
    if generality == case or cases[generality].scenario != scenario:
        return f"case {case!r} has {generality!r} for generality, which is no other case of its scenario {scenario!r}."
    near = [identifier for identifier in locality if cases[identifier].scenario == scenario]
    return f"case {case!r} has {near[0]!r} of its own scenario {scenario!r} for locality." if near else None
