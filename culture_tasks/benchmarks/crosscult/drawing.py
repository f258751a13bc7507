"""Making a draw: the release's own pairing where it has one, else by a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from culture_tasks.benchmarks.crosscult.draw import (
    ChainPairing,
    Draw,
    DrawOptions,
    SinglePairing,
    pairing_problem,
)
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases
from culture_tasks.benchmarks.crosscult.splitting import split_scenarios
from culture_tasks.benchmarks.crosscult.vocabulary import ORIGINAL_ORDER, PARTITIONS, TARGETS, Part, Partition
from culture_tasks.errors import DataError

_ONLY_OTHER: Mapping[Partition, Partition] = {"zh": "ar", "ar": "zh"}


def make_draw(raw: RawCases, options: DrawOptions | None = None) -> Draw:
    """Splits the scenarios and pairs the cases.

    Each case is drawn for with a seed of its own, made of the seed and its id, so that a draw doesn't depend on the
    order of the rows.

    Args:
        raw: The raw cases.
        options: What the paper leaves open; None means the defaults.

    Raises:
        DataError: If there are too few scenarios or cases, or the release's own pairing doesn't fit its cases.
    """
    chosen = options or DrawOptions()
    split = split_scenarios(raw.cases, chosen.seed, chosen.split_by)
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
                pair = SinglePairing(
                    case=case.id,
                    target=target,
                    generality=case.generality or self._generality(case, rng),
                    cross_language=self._cross_language(case, target, rng),
                    cross_scenario=case.cross_scenario or self._elsewhere(case, rng, 1)[0],
                )
                self._check(case, pair.generality, (pair.cross_scenario,))
                yield pair

    def sequential(self) -> Iterator[ChainPairing]:
        for case in self.cases:
            if self.split[case.scenario] != "sequential":
                continue
            rng = self._rng(case, "chain")
            generality = case.generality or self._generality(case, rng)
            locality = case.locality or tuple(self._elsewhere(case, rng, len(ORIGINAL_ORDER)))
            if len(locality) != len(ORIGINAL_ORDER):
                raise DataError(
                    f"crosscult: case {case.id!r}, field 'locality': found {len(locality)} cases. Needed is one for "
                    f"each of the {len(ORIGINAL_ORDER)} steps, in the order {', '.join(ORIGINAL_ORDER)}."
                )
            self._check(case, generality, locality)
            yield ChainPairing(case=case.id, generality=generality, locality=locality)  # type: ignore[arg-type]

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

    def _cross_language(self, case: RawCase, target: Partition, rng: random.Random) -> Partition:
        drawn: Partition = rng.choice([partition for partition in PARTITIONS if partition != target])
        if case.cross_language is not None and case.cross_language != target:
            return case.cross_language
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

    def _check(self, case: RawCase, generality: str, locality: tuple[str, ...]) -> None:
        problem = pairing_problem(self._by_id, case.id, generality, locality)
        if problem is not None:
            raise DataError(f"crosscult: the release's own pairing can't be used: {problem}")

    @cached_property
    def _by_id(self) -> dict[str, RawCase]:
        return {case.id: case for case in self.cases}

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
