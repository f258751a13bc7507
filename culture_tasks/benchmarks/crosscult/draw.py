"""The draw: which scenarios are tested, and which other cases a case is paired with.

The paper gives the number of scenarios of each part and the scenario that each paired item comes from, not the item. So
the items are drawn by a fixed seed, the same everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from culture_tasks.benchmarks.crosscult.editions import Edition
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase
from culture_tasks.benchmarks.crosscult.vocabulary import TOPICS, Part
from culture_tasks.errors import DataError

_TEST_SHARE = 10 / 49  # of the release's scenarios, in each test (Table 1)
_FEWEST = 2  # scenarios of a test, since locality on other scenarios needs another one
_TESTS: tuple[Part, ...] = ("single", "sequential")


def pairs_of(
    cases: Mapping[str, RawCase], split: Mapping[str, Part], edition: Edition
) -> dict[str, list[dict[str, Any]]]:
    """Pairs the cases by the parts of their scenarios; raises DataError if there are too few.

    ``single`` are the cases of ``train`` and ``single``, one for each target (Appendix C.1.1): ``generality`` is
    another case of the scenario, ``cross_language`` the partition of the question about the same image, and
    ``cross_scenario`` a case of another scenario of the part. ``sequential`` are the chains (Appendix C.1.2):
    ``generality`` is one case for all steps, since the paper's item has one image, and ``locality`` one for each.
    Each case has a seed made of its id, so the draw doesn't depend on the order of the rows.
    """
    pairs: dict[str, list[dict[str, Any]]] = {"single": [], "sequential": []}
    for case_id, siblings, others in _candidates(cases, split):
        if split[cases[case_id].scenario] == "sequential":
            rng = random.Random(f"0-chain-{case_id}")  # noqa: S311
            generality, steps = rng.choice(siblings), len(edition.orders[0])
            items = rng.sample(others, steps) if len(others) >= steps else rng.choices(others, k=steps)
            pairs["sequential"].append({"case": case_id, "generality": generality, "locality": items})
            continue
        for target in edition.targets:
            rng = random.Random(f"0-{target}-{case_id}")  # noqa: S311
            pair = {
                "case": case_id,
                "target": target,
                "generality": rng.choice(siblings),
                "cross_language": rng.choice([code for code in edition.codes if code != target]),
                "cross_scenario": rng.sample(others, 1)[0],
            }
            pairs["single"].append(pair)
    return pairs


def _candidates(cases: Mapping[str, RawCase], split: Mapping[str, Part]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields each case with the other cases of its scenario, and those of other scenarios of its part."""
    members: dict[str, list[str]] = {scenario: [] for scenario in sorted(split)}
    for case_id in sorted(cases):
        members[cases[case_id].scenario].append(case_id)
    outsiders = {
        scenario: [
            case_id
            for other, ids in members.items()
            if other != scenario and split[other] == split[scenario]
            for case_id in ids
        ]
        for scenario in members
    }
    for case_id, case in cases.items():
        siblings = [sibling for sibling in members[case.scenario] if sibling != case_id]
        others = outsiders[case.scenario]
        if not siblings or not others:
            raise DataError(
                f"crosscult: scenario {case.scenario!r} has {len(siblings) + 1} cases, and {len(others)} of other "
                f"scenarios are in its part {split[case.scenario]!r}. Expected another case of the scenario for "
                "generality, and another scenario of the part for locality. Add some, or leave the scenario out."
            )
        yield case_id, siblings, others


def split_scenarios(cases: Collection[RawCase]) -> Mapping[str, Part]:
    """Returns the part of each scenario: the release's own where the cases name one, else a draw by a fixed seed.

    Of 49 scenarios, 10 go to each test, and each topic has its share of them. Of another number, the same share does.
    """
    topics = {case.scenario: case.topic for case in cases}
    parts: dict[str, Any] = {case.scenario: case.split for case in cases if case.split}
    if missing := sorted(topics.keys() - parts.keys()) if parts else []:
        raise DataError(
            f"crosscult: {len(parts)} of {len(topics)} scenarios have a value in the column 'split', and "
            f"{missing[0]!r} has none. Give every scenario one, or remove the column."
        )
    if parts:
        return parts
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
    sizes = {topic: int(share) for topic, share in exact_shares.items()}
    by_remainder = sorted(TOPICS, key=lambda topic: (sizes[topic] - exact_shares[topic], TOPICS.index(topic)))
    for topic in by_remainder[: quota - sum(sizes.values())]:
        sizes[topic] += 1
    return [scenario for topic in TOPICS for scenario in rng.sample(by_topic[topic], sizes[topic])]
