"""The draw: which scenarios are tested, and which other cases a case is paired with; as data that can be kept.

The paper gives the number of scenarios of each part and the scenario that each paired item comes from, not the item. So
the items are drawn by a fixed seed. A draw written to ``crosscult_draw.json`` in the user's data folder replaces the
default one, so that two laboratories can run the very same cases.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases, load
from culture_tasks.benchmarks.crosscult.vocabulary import TOPICS, Part
from culture_tasks.benchmarks.registry import check_revisions
from culture_tasks.data.rows import fingerprint
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.plain_files import write_whole
from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

FILE_NAME = "crosscult_draw.json"
_TEST_SHARE = 10 / 49  # of the release's scenarios, in each test (Table 1)
_FEWEST = 2  # scenarios of a test, and cases of a scenario
_TESTS: tuple[Part, ...] = ("single", "sequential")


class _DrawPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class DrawOptions(_DrawPart):
    """The choices that the paper leaves open.

    Attributes:
        split_by: Whether each test gets its share of every topic, or scenarios are drawn whatever their topic.
        cross_language: Partition of the cross-language locality item: one of the two others at random, English, or the
            other target.
        locality_pool: Whether items of other scenarios come from the same part of the data, or from all of them.
    """

    seed: int = 0
    split_by: Literal["topic", "scenario"] = "topic"
    cross_language: Literal["drawn", "english", "other"] = "drawn"
    locality_pool: Literal["part", "all"] = "part"


class SinglePairing(_DrawPart):
    """The paired items of one single-insert case (Appendix C.1.1)."""

    case: str
    target: str
    generality: str  # another case of the same scenario
    cross_language: str  # partition of the question about the same image
    cross_scenario: str  # a case of another scenario


class ChainPairing(_DrawPart):
    """The paired items of one sequential-insert chain (Appendix C.1.2)."""

    case: str
    generality: str  # another case of the same scenario, for all three steps: the paper's item has one image
    locality: tuple[str, ...]  # a case of another scenario for each step


class Draw(_DrawPart):
    """A scenario split and the pairing of all cases."""

    format: Literal[1] = 1  # version of the file's layout
    data: str  # fingerprint of the raw cases that it was made for
    options: DrawOptions
    split: Annotated[Mapping[str, Part], Field(min_length=1)]  # the part of each scenario
    single: tuple[SinglePairing, ...]  # of the cases of `train` and `single`, two for each
    sequential: tuple[ChainPairing, ...]  # of the cases of `sequential`

    @cached_property
    def fingerprint(self) -> str:
        """Two runs compare only where this agrees."""
        return fingerprint([self.model_dump(mode="json")])


def make_draw(raw: RawCases, options: DrawOptions | None = None) -> Draw:
    """Splits the scenarios and pairs the cases; raises DataError if there are too few.

    Each case has a seed made of the draw's seed and its id, so a draw doesn't depend on the order of the rows.
    """
    edition = raw.edition
    options = options or DrawOptions()
    split = _split_scenarios(raw.cases, options)
    members: dict[str, list[str]] = {scenario: [] for scenario in sorted(split)}
    for identifier, case in sorted(raw.cases_by_id.items()):
        members[case.scenario].append(identifier)
    outside_cases = {
        scenario: [
            identifier
            for neighbour, ids in members.items()
            if neighbour != scenario and (options.locality_pool == "all" or split[neighbour] == split[scenario])
            for identifier in ids
        ]
        for scenario in members
    }
    single, sequential = [], []
    for case in raw.cases:
        siblings, outsiders, part = members[case.scenario], outside_cases[case.scenario], split[case.scenario]
        if len(siblings) < _FEWEST:
            raise DataError(
                f"crosscult: scenario {case.scenario!r} has one case. Generality needs another one of the same "
                "scenario: add cases, or take the scenario out."
            )
        if not outsiders:
            raise DataError(
                f"crosscult: no scenario beside {case.scenario!r} in the part {part!r}. Locality "
                "needs one: draw with locality_pool=all, or put more scenarios into the part."
            )
        if part == "sequential":
            rng = random.Random(f"{options.seed}-chain-{case.id}")  # noqa: S311
            generality, steps = _sibling(case, siblings, rng), len(edition.orders[0])
            items = rng.sample(outsiders, steps) if len(outsiders) >= steps else rng.choices(outsiders, k=steps)
            sequential.append(ChainPairing(case=case.id, generality=generality, locality=tuple(items)))
            continue
        for target in edition.targets:
            rng = random.Random(f"{options.seed}-{target}-{case.id}")  # noqa: S311
            generality, partners = _sibling(case, siblings, rng), [code for code in edition.codes if code != target]
            languages = {  # drawn whatever the option is
                "drawn": rng.choice(partners),
                "english": edition.codes[0],
                "other": next((code for code in edition.targets if code != target), partners[0]),
            }
            pairing = SinglePairing(
                case=case.id,
                target=target,
                generality=generality,
                cross_language=languages[options.cross_language],
                cross_scenario=rng.sample(outsiders, 1)[0],
            )
            single.append(pairing)
    return Draw(data=raw.fingerprint, options=options, split=split, single=tuple(single), sequential=tuple(sequential))


def _sibling(case: RawCase, siblings: Sequence[str], rng: random.Random) -> str:
    """Draws another case of the same scenario."""
    index = rng.randrange(len(siblings) - 1)
    return siblings[index + (index >= siblings.index(case.id))]


def _split_scenarios(cases: Sequence[RawCase], options: DrawOptions) -> dict[str, Part]:
    """Returns the part of each scenario: the release's own where every case names one, else a draw by a fixed seed.

    Of 49 scenarios, 10 go to each test. Of another number, the same share does, and 2 at least: locality on other
    scenarios needs another one in the same test.
    """
    released = {case.scenario: case.part for case in cases}
    parts = {scenario: part for scenario, part in released.items() if part is not None}
    if len(parts) == len(released):
        return parts
    if parts:
        scenario = next(scenario for scenario, part in released.items() if part is None)
        raise DataError(
            f"crosscult: {len(parts)} of {len(released)} scenarios have a value in the column 'split', and "
            f"{scenario!r} has none. Give every scenario one, or remove the column."
        )
    topics = {case.scenario: case.topic for case in cases}
    quota = max(_FEWEST, round(len(topics) * _TEST_SHARE))
    if len(topics) < len(_TESTS) * quota:
        raise DataError(
            f"crosscult: {len(topics)} scenarios can't be split. Expected at least {len(_TESTS) * _FEWEST}, {_FEWEST} "
            "for each test; or a column 'split' that names the part of each scenario."
        )
    rng = random.Random(f"{options.seed}-split")  # noqa: S311
    pool = sorted(topics)
    for part in _TESTS:
        scenarios = _shares(quota, pool, topics, rng) if options.split_by == "topic" else rng.sample(pool, quota)
        parts |= dict.fromkeys(scenarios, part)
        pool = [scenario for scenario in pool if scenario not in parts]
    return {scenario: parts.get(scenario, "train") for scenario in topics}


def _shares(quota: int, pool: Sequence[str], topics: Mapping[str, str], rng: random.Random) -> list[str]:
    """Draws from each topic its share of the scenarios that are left, by largest remainder."""
    by_topic = {topic: [scenario for scenario in pool if topics[scenario] == topic] for topic in TOPICS}
    exact_shares = {topic: quota * len(members) / len(pool) for topic, members in by_topic.items()}
    seats = {topic: int(share) for topic, share in exact_shares.items()}
    by_remainder = sorted(TOPICS, key=lambda topic: (seats[topic] - exact_shares[topic], TOPICS.index(topic)))
    for topic in by_remainder[: quota - sum(seats.values())]:
        seats[topic] += 1
    return [scenario for topic in TOPICS for scenario in rng.sample(by_topic[topic], seats[topic])]


def draw_file(data_folder: Path | None) -> Path | None:
    """Returns the draw that the user keeps, or None."""
    path = None if data_folder is None else data_folder / FILE_NAME
    return path if path is not None and path.is_file() else None


def draw_in_force(data_folder: Path | None, raw: RawCases) -> Draw:
    """Returns the draw that the user keeps, else the default one; raises DataError if it doesn't fit the data.

    An own culture has the default one.
    """
    path = draw_file(data_folder) if raw.edition is PAPER else None
    if path is None:
        return make_draw(raw)
    _log.info("reading %s", path)
    again = "with `culture-tasks data draw`"
    try:
        draw = Draw.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "file"
        raise DataError(f"{path}, {place}: {first['msg']}. Make a draw {again}.") from None
    if draw.data != raw.fingerprint:
        raise DataError(
            f"{path}: made for data with the fingerprint {draw.data}; the data here have {raw.fingerprint}. "
            f"Use the data that it was made for, or make a draw of these {again}."
        )
    for problem in _problems(draw, raw):
        raise DataError(f"{path}: {problem} Correct the file, or make a draw {again}.")
    return draw


def _problems(draw: Draw, raw: RawCases) -> Iterator[str]:
    """Yields the problems of a draw, whose pairings may be written by hand."""
    if differing := sorted(draw.split.keys() ^ {case.scenario for case in raw.cases}):
        yield f"the scenario {differing[0]!r} is in the data or in the split, and not in both."
    chains = {case.id for case in raw.cases if draw.split[case.scenario] == "sequential"}
    expected = sorted((case, target) for case in raw.cases_by_id if case not in chains for target in PAPER.targets)
    if sorted((pair.case, pair.target) for pair in draw.single) != expected:
        yield "the single-insert pairings are not the Chinese and the Arabic target of each case outside 'sequential'."
    if sorted(chain.case for chain in draw.sequential) != sorted(chains):
        yield "the sequential-insert pairings are not one for each case of 'sequential'."
    for pair in draw.single:
        codes = [code for code in PAPER.codes if code != pair.target]
        if pair.cross_language not in codes:
            yield (
                f"case {pair.case!r} with the target {pair.target!r} has {pair.cross_language!r} for cross-language "
                f"locality. Expected one of {', '.join(codes)}."
            )
    for chain in draw.sequential:
        if len(chain.locality) != len(PAPER.orders[0]):
            yield f"case {chain.case!r} has {len(chain.locality)} cases for locality. Expected {len(PAPER.orders[0])}."
    scenarios = {case.id: case.scenario for case in raw.cases}
    items = [(pair.case, pair.generality, [pair.cross_scenario]) for pair in draw.single]
    items += [(chain.case, chain.generality, list(chain.locality)) for chain in draw.sequential]
    for case, generality, locality in items:
        scenario = scenarios[case]
        if generality == case or scenarios.get(generality) != scenario:
            yield (
                f"case {case!r} has {generality!r} for generality. Expected another case of its scenario {scenario!r}."
            )
        if misfits := [identifier for identifier in locality if scenarios.get(identifier, scenario) == scenario]:
            yield (
                f"case {case!r} has {misfits[0]!r} for locality. Expected a case of a scenario other than {scenario!r}."
            )


def register(actions: argparse._SubParsersAction[Any]) -> None:
    """Adds ``culture-tasks data draw``."""
    parser = actions.add_parser(
        "draw",
        help="split and pair the cases of CrossCult-KIBench",
        description=f"Writes the scenario split and the pairing of cases. As {FILE_NAME} in the data folder they "
        "replace the default ones.",
    )
    parser.add_argument("benchmark", choices=["crosscult"])
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="file to write")
    for name, field in DrawOptions.model_fields.items():
        flag, choices = f"--{name.replace('_', '-')}", get_args(field.annotation) or None
        parser.add_argument(flag, type=str if choices else int, choices=choices, default=field.default)
    parser.add_argument("--data", type=Path, help="the data folder (default: CULTURE_TASKS_DATA, else the Hub)")
    parser.set_defaults(make_text=_write_draw)


def _write_draw(options: argparse.Namespace) -> str:
    settings = Settings.from_environment()
    if options.data:
        settings = settings.model_copy(update={"data": options.data})
    check_revisions(settings)
    raw = load(settings)
    draw = make_draw(raw, DrawOptions(**{name: getattr(options, name) for name in DrawOptions.model_fields}))
    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(options.output, draw.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise SettingsError(
            f"data draw: can't write to {options.output} ({error.strerror}). Choose another place."
        ) from None
    counts = f"{len(draw.single)} single-insert cases, {len(draw.sequential)} chains"
    return f"{options.output}: {counts} ({draw.fingerprint})"
