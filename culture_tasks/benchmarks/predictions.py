"""Predictions that a benchmark's authors have published, which anybody can score again without a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPredictions:
    """The replies of a model to all questions of a group, and the scores that were published with them.

    Attributes:
        model: The model, as the published table names it.
        group: The group of tasks.
        replies: Reads the replies, by the item of the question.
        scores: Scores as published, by a task or the group and a metric; on the metric's own scale.
        within: How far rounding in the published table may move a score.
    """

    model: str
    group: str
    replies: Callable[[], Mapping[str, str]]
    scores: Mapping[tuple[str, str], str]
    within: float


class OffersPredictions(ABC):
    """A benchmark whose authors have published predictions."""

    @abstractmethod
    def predictions(self, folder: Path) -> Sequence[PublishedPredictions]:
        """Returns the predictions in a copy of the authors' repository; none where the folder is something else."""

    @abstractmethod
    def write_questions(self, folder: Path, data_folder: Path) -> None:
        """Writes the questions of a copy of the authors' repository as local data, blank images in place of theirs.

        Raises:
            DataError: If the folder lacks the questions.
        """
