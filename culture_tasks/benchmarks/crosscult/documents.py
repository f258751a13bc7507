"""CrossCult-KIBench's cases as documents of a harness (section 3.2 and Appendix C.1).

A document is one request, with all that has to be inserted before it. It needs no other document, no file and no state:
a model that can't insert anything answers the request alone, and its row is the paper's base model.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypedDict

from culture_tasks.benchmarks.crosscult.draw import (
    FILE_NAME,
    Draw,
    make_draw,
    read_draw,
)
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases, load
from culture_tasks.benchmarks.crosscult.vocabulary import (
    LOCALITY_ROLES,
    ORIGINAL_ORDER,
    PARTITIONS,
    Order,
    Partition,
    Role,
    Setting,
)

_log = logging.getLogger(__name__)


class InsertedSample(TypedDict):
    """One insertion sample (i, q, a), without its image i: that is the document's ``insertion_image``.

    ``partition`` is the language-culture partition that the sample belongs to.
    """

    partition: str
    question: str
    answer: str


class CrossCultDoc(TypedDict):
    """One request of CrossCult-KIBench, without its two images.

    The harness's data set adds two image columns: ``image``, which the request is about, and ``insertion_image``,
    which all of the document's insertions are about (a chain has one image: section 3.1). They are the same picture
    in reliability and cross-language locality, and where nothing is inserted. ``insertion_image`` is not decoded, but
    a mapping with the file at ``path``.

    Attributes:
        id: Different in each document of a task.
        case_id: The single-insert case, the sequential-insert chain or, in the diagnostic, the raw case. All tasks of
            a setting have the same cases in the same order, one document each.
        setting: ``diagnostic``, ``single``, ``sequential`` or ``retention``.
        role: What the request measures.
        scenario: Scenario of the inserted sample.
        topic: Topic of that scenario.
        partition: Partition whose inserted sample this request is about: the target of a single-insert case, the
            partition of ``step`` in a chain, the partition asked in the diagnostic.
        language: Language of the request, hence of its system prompt; other than ``partition`` in cross-language
            locality alone.
        order: Partitions in the order of their insertion; as many as ``insertions``, or more where a chain is cut off.
        step: Place of ``partition`` in ``order``, from 1; 0 without insertions.
        insertions: What is inserted before the request, the first first.
        wants_plain_answer: Whether the answer without insertions is wanted too, as in locality: a model that inserts
            then returns ``[answer, answer without insertions]``.
        question: The request.
        reference: The right answer; empty in locality, where the reference is what the model says without insertions.
        image_id: Raw case that ``image`` belongs to: equal where the images are.
        insertion_image_id: Raw case that ``insertion_image`` belongs to.
        request_scenario: Scenario of ``image``; other than ``scenario`` in locality on other scenarios alone.
        data: Fingerprint of the raw cases.
        draw: Fingerprint of the scenario split and of the pairing of cases.
    """

    id: str
    case_id: str
    setting: str
    role: str
    scenario: str
    topic: str
    partition: str
    language: str
    order: list[str]
    step: int
    insertions: list[InsertedSample]
    wants_plain_answer: bool
    question: str
    reference: str
    image_id: str
    insertion_image_id: str
    request_scenario: str
    data: str
    draw: str


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
                others = {"generality": pair.generality, "cross_scenario_locality": pair.cross_scenario}
                language = pair.cross_language if role == "cross_language_locality" else pair.target
                request = _Request(role, self._cases[others.get(role, pair.case)], language, pair.target)
                yield self._document(_Chain("single", case, (pair.target,)), request, inserted=1)

    def sequential(self, role: Role, partition: Partition) -> Iterator[CrossCultDoc]:
        """Yields one document for each chain: after all three insertions, the item of one partition's step.

        Args:
            role: One of the three sequential-insert roles.
            partition: Names the step: the one that inserts this partition.
        """
        for pair in self.draw.sequential:
            case = self._cases[pair.case]
            chain = _Chain("sequential", case, ORIGINAL_ORDER)
            others = {"generality": pair.generality, "locality": pair.locality[ORIGINAL_ORDER.index(partition)]}
            request = _Request(role, self._cases[others.get(role, case.id)], partition, partition)
            yield self._document(chain, request, inserted=len(ORIGINAL_ORDER))

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
            insertions=[
                InsertedSample(partition=partition, question=inserting.question, answer=inserting.answer)
                for partition in chain.order[:inserted]
                for inserting in [chain.case.samples[partition]]
            ],
            wants_plain_answer=request.role in LOCALITY_ROLES,
            question=sample.question,
            reference="" if request.role in LOCALITY_ROLES else sample.answer,
            image_id=request.case.id,
            insertion_image_id=chain.case.id,
            request_scenario=request.case.scenario,
            data=self.raw.fingerprint,
            draw=self.draw.fingerprint,
        )

    @cached_property
    def _cases(self) -> Mapping[str, RawCase]:
        return {case.id: case for case in self.raw.cases}

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {case.id: row for row, case in enumerate(self.raw.cases)}


def load_release(data_folder: Path | None) -> Release:
    """Loads the raw cases with their split and pairing.

    Args:
        data_folder: The user's data folder, or None. A ``crosscult_draw.json`` in it replaces the default draw.

    Raises:
        DataError: If the data or the draw can't be used.
    """
    raw = load(data_folder)
    path = draw_file(data_folder)
    if path is None:
        return Release(raw, make_draw(raw))
    _log.info("reading %s", path)
    return Release(raw, read_draw(path, raw))


def draw_file(data_folder: Path | None) -> Path | None:
    """Returns the draw that the user keeps, or None."""
    path = None if data_folder is None else data_folder / FILE_NAME
    return path if path is not None and path.is_file() else None
