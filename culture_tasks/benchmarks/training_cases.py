"""Training cases that a benchmark may offer beside its tasks, to fit knowledge-insertion methods on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from culture_tasks.settings import Settings

Locality = Literal["cross_language_locality", "cross_scenario_locality"]
"""The answers that an insertion has to leave alone: about the same image in another language, or another scenario."""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question about an image with the data's own answer."""

    image: Path  # a file, checked
    system: str  # the system message of the benchmark's tasks
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class InsertionCase:
    """One sample to insert, with questions that test the insertion."""

    scenario: str  # of the sample; a method may not be evaluated on the scenarios that it was trained on
    inserted: AnsweredQuestion
    generality: tuple[AnsweredQuestion, ...]  # which the insertion should answer too
    locality: tuple[tuple[Locality, AnsweredQuestion], ...]  # whose answers it must not change


@dataclass(frozen=True, slots=True)
class TrainingCases:
    """Cases to train on, in a fixed order."""

    cases: Sequence[InsertionCase]
    raw: str  # fingerprint of the raw data, as the documents' field `data` has it
    fingerprint: str  # of the cases


class OffersTraining(ABC):
    """A benchmark with training cases."""

    @abstractmethod
    def training_cases(self, settings: Settings, limit: int | None = None) -> TrainingCases:
        """Loads the training cases, with their images checked: all, or so many, evenly spaced over all.

        Raises:
            DataError: If the data can't be used, an image is missing or broken, or nothing is for training.
        """
