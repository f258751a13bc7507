"""The draw: which scenarios are tested, and which other cases a case is paired with.

The paper gives the number of scenarios of each part and the scenario that each paired item comes from, not the item. So
the items are drawn by a fixed seed, the same everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases
from culture_tasks.benchmarks.crosscult.vocabulary import TOPICS, Part
from culture_tasks.data.reading import fingerprint
from culture_tasks.errors import DataError

_TEST_SHARE = 10 / 49  # of the release's scenarios, in each test (Table 1)
_FEWEST = 2  # scenarios of a test, since locality on other scenarios needs another one
_TESTS: tuple[Part, ...] = ("single", "sequential")
# Part of the fingerprint, so that runs compare with those of the time when these could be chosen.
_FORMER_OPTIONS: Mapping[str, Any] = {
    "format": 1,
    "options": {"seed": 0, "split_by": "topic", "cross_language": "drawn", "locality_pool": "part"},
}


class SinglePairing(NamedTuple):
    """The paired items of one single-insert case (Appendix C.1.1)."""

    case: str
    target: str
    generality: str  # another case of the same scenario
    cross_language: str  # partition of the question about the same image
    cross_scenario: str  # a case of another scenario of the same part


class ChainPairing(NamedTuple):
    """The paired items of one sequential-insert chain (Appendix C.1.2)."""

    case: str
    generality: str  # another case of the same scenario, for all three steps: the paper's item has one image
    locality: tuple[str, ...]  # a case of another scenario for each step


@dataclass(frozen=True)
class Draw:
    """A scenario split and the pairing of all cases."""

    data: str  # fingerprint of the raw cases that it was made for
    split: Mapping[str, Part]  # the part of each scenario
    single: Sequence[SinglePairing]  # of the cases of `train` and `single`, one for each target
    sequential: Sequence[ChainPairing]  # of the cases of `sequential`

    @cached_property
    def fingerprint(self) -> str:
        """Two runs compare only where this agrees."""
        pairings: dict[str, Any] = {name: [pair._asdict() for pair in getattr(self, name)] for name in _TESTS}
        return fingerprint([{**_FORMER_OPTIONS, "data": self.data, "split": self.split, **pairings}])


def make_draw(raw: RawCases) -> Draw:
    """Splits the scenarios and pairs the cases; raises DataError if there are too few.

    Each case has a seed made of its id, so the draw doesn't depend on the order of the rows.
    """
    targets, codes = raw.edition.targets, raw.edition.codes
    split = _split_scenarios(raw.cases)
    members: dict[str, list[str]] = {scenario: [] for scenario in sorted(split)}
    for identifier, case in sorted(raw.cases_by_id.items()):
        members[case.scenario].append(identifier)
    others = {
        scenario: [
            identifier
            for other, ids in members.items()
            if other != scenario and split[other] == split[scenario]
            for identifier in ids
        ]
        for scenario in members
    }
    single, sequential = [], []
    for case in raw.cases:
        siblings, outsiders, part = members[case.scenario], others[case.scenario], split[case.scenario]
        if len(siblings) == 1 or not outsiders:
            found = "one case" if len(siblings) == 1 else f"no other scenario beside it in the part {part!r}"
            raise DataError(
                f"crosscult: scenario {case.scenario!r} has {found}. Expected another case of the scenario for "
                "generality, and another scenario of the part for locality. Add some, or leave the scenario out."
            )
        if part == "sequential":
            rng = random.Random(f"0-chain-{case.id}")  # noqa: S311
            generality, steps = _sibling(case, siblings, rng), len(raw.edition.orders[0])
            items = rng.sample(outsiders, steps) if len(outsiders) >= steps else rng.choices(outsiders, k=steps)
            sequential.append(ChainPairing(case.id, generality, tuple(items)))
            continue
        for target in targets:
            rng = random.Random(f"0-{target}-{case.id}")  # noqa: S311
            pairing = SinglePairing(
                case=case.id,
                target=target,
                generality=_sibling(case, siblings, rng),
                cross_language=rng.choice([code for code in codes if code != target]),
                cross_scenario=rng.sample(outsiders, 1)[0],
            )
            single.append(pairing)
    return Draw(raw.fingerprint, split, single, sequential)


def _sibling(case: RawCase, siblings: Sequence[str], rng: random.Random) -> str:
    """Draws another case of the same scenario."""
    index = rng.randrange(len(siblings) - 1)
    return siblings[index + (index >= siblings.index(case.id))]


def _split_scenarios(cases: Sequence[RawCase]) -> Mapping[str, Part]:
    """Returns the part of each scenario: the release's own where the cases name one, else a draw by a fixed seed.

    Of 49 scenarios, 10 go to each test, and each topic has its share of them. Of another number, the same share does.
    """
    released = {case.scenario: case.part for case in cases}
    parts = {scenario: part for scenario, part in released.items() if part is not None}
    if missing := sorted(released.keys() - parts.keys()) if parts else []:
        raise DataError(
            f"crosscult: {len(parts)} of {len(released)} scenarios have a value in the column 'split', and "
            f"{missing[0]!r} has none. Give every scenario one, or remove the column."
        )
    if parts:
        return parts
    topics = {case.scenario: case.topic for case in cases}
    quota = max(_FEWEST, round(len(topics) * _TEST_SHARE))
    if len(topics) < len(_TESTS) * quota:
        raise DataError(
            f"crosscult: {len(topics)} scenarios can't be split. Expected at least {len(_TESTS) * _FEWEST}, {_FEWEST} "
            "for each test; or a column 'split' that names the part of each scenario."
        )
    rng = random.Random("0-split")  # noqa: S311
    pool = sorted(topics)
    for part in _TESTS:
        parts |= dict.fromkeys(_shares(quota, pool, topics, rng), part)
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
