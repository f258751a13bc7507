"""CrossCult-KIBench's cases as documents of a harness and as training cases (section 3.2 and Appendix C.1).

A document is one request, with all that has to be inserted before it. It needs no other document, no file and no state:
a model that can't insert anything answers the request alone, and its row is the paper's base model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from culture_tasks.benchmarks.crosscult.draw import pairs_of, split_scenarios
from culture_tasks.benchmarks.crosscult.editions import Order
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, RawCases
from culture_tasks.benchmarks.crosscult.vocabulary import (
    LOCALITY_ROLES,
    SINGLE_ROLES,
    Role,
    Setting,
)
from culture_tasks.benchmarks.interface import Doc
from culture_tasks.benchmarks.training_cases import AnsweredQuestion, InsertionCase, Locality, TrainingCases
from culture_tasks.data.reading import fingerprint
from culture_tasks.errors import DataError

# Part of the fingerprint, so that runs compare with those of the time when these could be chosen.
_FORMER_OPTIONS: Mapping[str, Any] = {
    "format": 1,
    "options": {"seed": 0, "split_by": "topic", "cross_language": "drawn", "locality_pool": "part"},
}


class Release:
    """All raw cases, with their split and pairing, as documents.

    Attributes:
        raw: The raw cases.
        split: The part of each scenario.
        pairs: The paired items of each case, by the tests that have them (:func:`pairs_of`).
        fingerprint: Two runs compare only where this agrees: it is of the raw cases, their split and pairs.
    """

    def __init__(self, raw: RawCases) -> None:
        self.raw, self.split = raw, split_scenarios(raw.cases)
        self.pairs = pairs_of(raw, self.split)
        parts = {"data": raw.fingerprint, "split": self.split, "single": self.pairs["single"]}
        self.fingerprint = fingerprint([{**_FORMER_OPTIONS, **parts, "sequential": self.pairs["sequential"]}])

    def diagnostic(self) -> Iterator[Doc]:
        """Yields each partition's question of each raw case, with nothing inserted (Figure 1b)."""
        for case in self.raw.cases:
            for partition in self.raw.edition.codes:
                yield self._document("diagnostic", "diagnostic", case, (), partition, inserted=0)

    def single(self, role: Role, *, train: bool = False) -> Iterator[Doc]:
        """Yields one document for each single-insert case of the test, or of the training data."""
        part = "train" if train else "single"
        for pair in self.pairs["single"]:
            case = self.raw.cases_by_id[pair["case"]]
            if self.split[case.scenario] == part:
                others = {"generality": "generality", "cross_scenario_locality": "cross_scenario"}
                request = pair[others[role]] if role in others else None
                code = pair["cross_language" if role == "cross_language_locality" else "target"]
                order = (pair["target"],)
                yield self._document("single", role, case, order, *order, inserted=1, request=request, language=code)

    def sequential(self, role: Role, partition: str) -> Iterator[Doc]:
        """Yields one document for each chain: after all insertions, the item of the step that inserts a partition."""
        order = self.raw.edition.orders[0]
        step = order.index(partition)
        for pair in self.pairs["sequential"]:
            request = {"generality": pair["generality"], "locality": pair["locality"][step]}.get(role)
            case = self.raw.cases_by_id[pair["case"]]
            yield self._document("sequential", role, case, order, partition, inserted=len(order), request=request)

    def retention(self, order: Order, partition: str, after: int) -> Iterator[Doc]:
        """Yields one document for each chain: reliability of a partition after some of the insertions (Figure 6)."""
        for pair in self.pairs["sequential"]:
            case = self.raw.cases_by_id[pair["case"]]
            yield self._document("retention", "reliability", case, order, partition, inserted=after)

    def _document(
        self,
        setting: Setting,
        role: Role,
        case: RawCase,
        order: Order,
        partition: str,
        *,
        inserted: int,
        request: str | None = None,
        language: str | None = None,
    ) -> Doc:
        """Returns the request about a partition, after the first insertions in an order of samples of a case.

        It is about another raw case where ``request`` has its id, and in another language where ``language`` says so.
        The harness's data set has two image columns beside: ``image``, and ``insertion_image``, which all insertions
        are about (a chain has one image: section 3.1), as a mapping with the file at ``path``.
        """
        request_case = case if request is None else self.raw.cases_by_id[request]
        code = language or partition
        case_id = f"{case.id}:{'-'.join(order)}" if order else case.id
        samples = ((name, case.samples[name]) for name in order[:inserted])
        return {
            "id": f"{case_id}/{role}/{partition}/{inserted}",  # different in each document of a task
            # a single-insert case, a chain or a raw case: the same in all tasks of a setting, in the same order
            "case_id": case_id,
            "setting": setting,
            "role": role,
            "scenario": case.scenario,  # of the inserted sample
            "topic": case.topic,
            "partition": partition,  # whose inserted sample it is about; the one that is asked in the diagnostic
            "language": code,  # of the request and its system prompt
            "order": list(order),  # partitions as they are inserted; more than `insertions` where a chain is cut off
            "step": order.index(partition) + 1 if order else 0,  # place of `partition` in `order`, from 1
            "insertions": [
                {"partition": name, "question": question, "answer": answer} for name, (question, answer) in samples
            ],
            "wants_plain_answer": role in LOCALITY_ROLES,  # a model that inserts returns its plain answer, too
            "question": request_case.samples[code].question,
            "reference": "" if role in LOCALITY_ROLES else request_case.samples[code].answer,
            "image_id": request_case.id,  # the raw case of `image`
            "insertion_image_id": case.id,  # and of `insertion_image`
            "request_scenario": request_case.scenario,
            "data": self.raw.fingerprint,
            "draw": self.fingerprint,
        }


def training_cases(release: Release, limit: int | None = None) -> TrainingCases:
    """Returns the single-insert training cases (Table 1: 11,600), with their images checked."""
    edition = release.raw.edition
    by_role = [list(release.single(role, train=True)) for role in SINGLE_ROLES]
    cases = list(zip(*by_role, strict=True))  # one document of each role
    if not cases:
        raise DataError(f"{edition.name}: no scenario is for training. Expected some whose 'split' is 'train'.")
    if limit is not None:
        cases = [cases[index * len(cases) // limit] for index in range(min(limit, len(cases)))]
    documents = [document for case in cases for document in case]
    ids = list(dict.fromkeys(document["image_id"] for document in documents))
    files = dict(zip(ids, release.raw.images(ids), strict=True))

    def answered_question(image_id: str, language: str) -> AnsweredQuestion:
        sample = release.raw.cases_by_id[image_id].samples[language]
        return AnsweredQuestion(Path(files[image_id]), edition[language].system_prompt, *sample)

    training = []
    for first, *others in cases:
        questions = {doc["role"]: answered_question(doc["image_id"], doc["language"]) for doc in others}
        case = InsertionCase(
            scenario=first["scenario"],
            inserted=answered_question(first["insertion_image_id"], first["partition"]),
            generality=(questions["generality"],),
            locality=tuple((kind, questions[kind]) for kind in get_args(Locality)),
        )
        training.append(case)
    return TrainingCases(training, release.raw.fingerprint, fingerprint(documents))
