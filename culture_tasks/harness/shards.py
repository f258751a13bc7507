"""Shards: parts of a task's documents, so that processes or machines that know nothing of each other share a run.

Shard 3 of 16 has every 16th cluster of the documents, from the third on. Clusters are the benchmark's, so that what
belongs together, such as the questions about one scene, is in one shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from culture_tasks.data.tables import fingerprint
from culture_tasks.errors import SettingsError
from culture_tasks.harness.scoring import scorer_of

KEY = "shard"
"""Entry of a task's metadata: the shard that was evaluated."""


class Shard(BaseModel):
    """Which part of a task was evaluated: a number from 1 on, of how many, with some of all documents.

    The fingerprint is a hash of all these documents and of their prompts: shards of one run have the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=1)
    of: int = Field(ge=1)
    documents: int = Field(ge=0)
    of_documents: int = Field(ge=0, le=10**9)
    fingerprint: str

    @classmethod
    def read(cls, metadata: Any) -> Shard | None:
        """Returns the shard that a task's metadata name, or None; a ValueError says that it has another form."""
        given = metadata.get(KEY) if isinstance(metadata, Mapping) else None
        try:
            return None if given is None else cls.model_validate(given)
        except ValidationError:
            raise ValueError(f"found {str(given)[:80]!r} as the shard of a task") from None

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"


class TaskShard(NamedTuple):
    """A shard of a task, and the place of each of its documents among all of the task's."""

    shard: Shard
    places: Sequence[int]


def task_shard(task: str, rows: Sequence[Mapping[str, Any]], *, number: int, of: int) -> TaskShard:
    """Returns a shard of a task's documents.

    Raises:
        SettingsError: If there are fewer clusters than shards: neither harness can make a task without documents. Every
            shard says so, not only one that would be empty.
    """
    clusters: dict[str, int] = {}
    scorer = scorer_of(task)
    numbers = [clusters.setdefault(scorer.cluster_of(row), len(clusters)) for row in rows]
    if len(clusters) < of:
        raise SettingsError(
            f"CULTURE_SHARD={number}/{of}: the {len(rows)} documents of {task} are in {len(clusters)} clusters, which "
            f"stay together. Divide the run into at most {len(clusters)} shards, or run {task} by itself."
        )
    places = [place for place, cluster in enumerate(numbers) if cluster % of == number - 1]
    asked = ({"document": repr(dict(row)), "prompt": repr(scorer.task.prompt(row))} for row in rows)
    shard = Shard(number=number, of=of, documents=len(places), of_documents=len(rows), fingerprint=fingerprint(asked))
    return TaskShard(shard, places)
