"""The single-insert training cases (Table 1: 11,600), on which insertion methods are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc, Release, load_release
from culture_tasks.benchmarks.crosscult.prompts import system_prompt
from culture_tasks.benchmarks.crosscult.raw_cases import Pictures
from culture_tasks.benchmarks.crosscult.vocabulary import SINGLE_ROLES
from culture_tasks.benchmarks.training_cases import AnsweredQuestion, InsertionCase, Locality, TrainingCases
from culture_tasks.data.tables import fingerprint
from culture_tasks.errors import DataError

_LOCALITY: dict[str, Locality] = {kind: kind for kind in get_args(Locality)}


def training_cases(data_folder: Path | None, limit: int | None = None) -> TrainingCases:
    """Loads the training cases, with their images checked.

    Args:
        data_folder: The user's data folder, or None for the Hub.
        limit: Take this many, evenly spaced over all; None takes all.

    Raises:
        DataError: If the data can't be used, an image is missing or broken, or no scenario is for training.
    """
    release = load_release(data_folder)
    by_role = [list(release.single(role, train=True)) for role in SINGLE_ROLES]
    cases = list(zip(*by_role, strict=True))  # one document of each role, in the same order of cases
    if not cases:
        raise DataError("crosscult: no scenario is for training. Expected some whose 'split' is 'train'.")
    if limit is not None:
        cases = [cases[index * len(cases) // limit] for index in range(min(limit, len(cases)))]
    documents = [document for case in cases for document in case]
    answered = _Answered(release, documents)
    return TrainingCases(
        cases=[_case(case, answered) for case in cases],
        raw=release.raw.fingerprint,
        fingerprint=fingerprint({**document} for document in documents),
    )


class _Answered:
    """Questions about images of some documents, with the answers that the documents of locality don't hold."""

    def __init__(self, release: Release, documents: Sequence[CrossCultDoc]) -> None:
        self._cases = {case.id: case for case in release.raw.cases}
        ids = list(dict.fromkeys(document["image_id"] for document in documents))
        files = Pictures(release.raw).files(release.rows_of(ids))
        self._files = {identifier: Path(file) for identifier, file in zip(ids, files, strict=True)}

    def question(self, image_id: str, language: str) -> AnsweredQuestion:
        """Returns what a raw case is asked in a language."""
        samples = self._cases[image_id].samples
        sample = next(sample for code, sample in samples.items() if code == language)
        return AnsweredQuestion(self._files[image_id], system_prompt(language), sample.question, sample.answer)


def _case(documents: Sequence[CrossCultDoc], answered: _Answered) -> InsertionCase:
    first = documents[0]
    asked = [
        (document["role"], answered.question(document["image_id"], document["language"])) for document in documents
    ]
    return InsertionCase(
        case_id=first["case_id"],
        scenario=first["scenario"],
        inserted=answered.question(first["insertion_image_id"], first["insertions"][0]["partition"]),
        generality=tuple(question for role, question in asked if role == "generality"),
        locality=tuple((_LOCALITY[role], question) for role, question in asked if role in _LOCALITY),
    )
