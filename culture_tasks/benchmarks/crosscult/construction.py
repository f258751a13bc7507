"""From raw cases and a draw to documents (section 3.2 and Appendix C.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc, Insertion
from culture_tasks.benchmarks.crosscult.draw import ChainPairing, Draw, SinglePairing
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases
from culture_tasks.benchmarks.crosscult.vocabulary import (
    LOCALITY_ROLES,
    ORIGINAL_ORDER,
    PARTITIONS,
    Order,
    Partition,
    Role,
    Setting,
)


@dataclass(frozen=True)
class _Chain:
    """What is inserted: samples of one raw case, of these partitions, in this order."""

    setting: Setting
    case: RawCase
    order: tuple[Partition, ...]

    @property
    def id(self) -> str:
        return f"{self.case.id}:{'-'.join(self.order)}" if self.order else self.case.id


@dataclass(frozen=True)
class _Request:
    """What is asked: about the image of a raw case, in a language, to see what became of a partition's sample."""

    role: Role
    case: RawCase
    language: Partition
    partition: Partition


@dataclass(frozen=True)
class Release:
    """All raw cases with their split and pairing.

    Attributes:
        raw: The raw cases.
        draw: The draw that is in force.
    """

    raw: RawCases
    draw: Draw

    def diagnostic(self) -> Iterator[CrossCultDoc]:
        """Yields each partition's question of each raw case, with nothing inserted (Figure 1b)."""
        for case in self.raw.cases:
            for partition in PARTITIONS:
                request = _Request("diagnostic", case, partition, partition)
                yield self._document(_Chain("diagnostic", case, ()), request, inserted=0)

    def single(self, role: Role, *, train: bool = False) -> Iterator[CrossCultDoc]:
        """Yields one document for each single-insert case.

        Args:
            role: One of the four single-insert roles.
            train: The cases for training a method, not those of the test.
        """
        part = "train" if train else "single"
        for pair in self.draw.single:
            case = self._cases[pair.case]
            if self.draw.split[case.scenario] == part:
                chain = _Chain("single", case, (pair.target,))
                yield self._document(chain, self._single_request(role, pair), inserted=1)

    def sequential(self, role: Role, partition: Partition) -> Iterator[CrossCultDoc]:
        """Yields one document for each chain: after all three insertions, the item of one partition's step.

        Args:
            role: One of the three sequential-insert roles.
            partition: Names the step: the one that inserts this partition.
        """
        for pair in self.draw.sequential:
            case = self._cases[pair.case]
            chain = _Chain("sequential", case, ORIGINAL_ORDER)
            asked = self._sequential_case(role, case, pair, ORIGINAL_ORDER.index(partition))
            yield self._document(chain, _Request(role, asked, partition, partition), inserted=len(ORIGINAL_ORDER))

    def retention(self, order: Order, partition: Partition, after: int) -> Iterator[CrossCultDoc]:
        """Yields one document for each chain: reliability of a partition after some of the insertions (Figure 6).

        Args:
            order: Order of the insertions.
            partition: Partition whose inserted sample is asked for.
            after: Number of insertions done, from the partition's own step to 3.

        Raises:
            ValueError: If the partition isn't inserted yet by then.
        """
        if partition not in order[:after]:
            raise ValueError(f"retention: {partition!r} is not inserted in the first {after} steps of {order}")
        for pair in self.draw.sequential:
            case = self._cases[pair.case]
            request = _Request("reliability", case, partition, partition)
            yield self._document(_Chain("retention", case, order), request, inserted=after)

    def rows_of(self, case_ids: Iterable[str]) -> list[int]:
        """Returns the rows of raw cases, to find their images."""
        return [self._rows[identifier] for identifier in case_ids]

    def _single_request(self, role: Role, pair: SinglePairing) -> _Request:
        asked = {"generality": pair.generality, "cross_scenario_locality": pair.cross_scenario}.get(role, pair.case)
        language = pair.cross_language if role == "cross_language_locality" else pair.target
        return _Request(role, self._cases[asked], language, pair.target)

    def _sequential_case(self, role: Role, case: RawCase, pair: ChainPairing, step: int) -> RawCase:
        asked = {"generality": pair.generality, "locality": pair.locality[step]}.get(role, case.id)
        return self._cases[asked]

    def _document(self, chain: _Chain, request: _Request, inserted: int) -> CrossCultDoc:
        sample = request.case.samples[request.language]
        return CrossCultDoc(
            id="/".join([chain.id, request.role, request.partition, str(inserted)]),
            case_id=chain.id,
            setting=chain.setting,
            role=request.role,
            scenario=chain.case.scenario,
            topic=chain.case.topic,
            partition=request.partition,
            language=request.language,
            order=list(chain.order),
            step=chain.order.index(request.partition) + 1 if chain.order else 0,
            insertions=[_insertion(chain.case, partition) for partition in chain.order[:inserted]],
            wants_plain_answer=request.role in LOCALITY_ROLES,
            question=sample.question,
            reference="" if request.role in LOCALITY_ROLES else sample.answer,
            image_id=request.case.id,
            insertion_image_id=chain.case.id,
            request_scenario=request.case.scenario,
            data=self.raw.fingerprint,
            draw=self._draw_fingerprint,
        )

    @cached_property
    def _cases(self) -> Mapping[str, RawCase]:
        return {case.id: case for case in self.raw.cases}

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {case.id: row for row, case in enumerate(self.raw.cases)}

    @cached_property
    def _draw_fingerprint(self) -> str:
        return self.draw.fingerprint


def _insertion(case: RawCase, partition: Partition) -> Insertion:
    sample = case.samples[partition]
    return Insertion(partition=partition, question=sample.question, answer=sample.answer)
