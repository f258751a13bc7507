"""Which scenarios are for training, and which for the tests (Table 1: 29, 10 and 10 of 49)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal

from culture_tasks.benchmarks.crosscult.raw_cases import RawCase
from culture_tasks.benchmarks.crosscult.vocabulary import TOPICS, Part, Topic
from culture_tasks.errors import DataError

SplitBy = Literal["topic", "scenario"]
"""Whether each part gets its share of every topic, or scenarios are drawn whatever their topic."""

SCENARIOS = 49
TEST_SCENARIOS = 10
_FEWEST = 2
_TESTS: tuple[Part, ...] = ("single", "sequential")


def split_scenarios(cases: Sequence[RawCase], seed: int, by: SplitBy) -> dict[str, Part]:
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
            "has none. Needed is one for each scenario, or none at all."
        )
    return _drawn_split({case.scenario: case.topic for case in cases}, seed, by)


def scenarios_in_a_test(scenarios: int) -> int:
    """Returns how many scenarios each test gets: 10 of 49, the nearest whole share otherwise, 2 at least."""
    return max(_FEWEST, round(scenarios * TEST_SCENARIOS / SCENARIOS))


def _drawn_split(topics: Mapping[str, Topic], seed: int, by: SplitBy) -> dict[str, Part]:
    quota = scenarios_in_a_test(len(topics))
    if len(topics) < len(_TESTS) * quota:
        raise DataError(
            f"crosscult: {len(topics)} scenarios can't be split. Needed are {len(_TESTS) * _FEWEST}, {_FEWEST} for "
            "each test; or a column 'split' that names the part of each scenario."
        )
    rng = random.Random(f"{seed}-split")  # noqa: S311
    left = sorted(topics)
    parts: dict[str, Part] = {}
    for part in _TESTS:
        drawn = _shares(left, topics, quota, rng) if by == "topic" else rng.sample(left, quota)
        parts |= dict.fromkeys(drawn, part)
        left = [scenario for scenario in left if scenario not in parts]
    return parts | dict.fromkeys(left, "train")


def _shares(left: Sequence[str], topics: Mapping[str, Topic], quota: int, rng: random.Random) -> list[str]:
    """Draws from each topic its share of the scenarios that are left, by largest remainder."""
    by_topic = {topic: [scenario for scenario in left if topics[scenario] == topic] for topic in TOPICS}
    exact = {topic: quota * len(members) / len(left) for topic, members in by_topic.items()}
    seats = {topic: int(share) for topic, share in exact.items()}
    by_remainder = sorted(TOPICS, key=lambda topic: (seats[topic] - exact[topic], TOPICS.index(topic)))
    for topic in by_remainder[: quota - sum(seats.values())]:
        seats[topic] += 1
    return [scenario for topic in TOPICS for scenario in rng.sample(by_topic[topic], seats[topic])]
