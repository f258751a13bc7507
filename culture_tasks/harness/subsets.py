"""A designed draw of a task's documents, the same for every model: it depends on the task's declarations alone.

Documents are drawn evenly from the benchmark's cultures and clusters (:mod:`culture_tasks.metrics.subsets`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from culture_tasks.benchmarks.interface import Documents, MeanScore
from culture_tasks.benchmarks.registry import benchmark_of
from culture_tasks.harness.records import PROBABILITY, scorer_of
from culture_tasks.metrics.subsets import SamplingFrame, draw, population


class Subset(BaseModel):
    """A designed draw of a task's documents: the entry ``key`` of the task's metadata.

    Where a metric makes one score of the documents of a cluster, whole clusters were drawn, and are its items. Of all
    items there are ``items``, with the ``spread`` of :class:`~culture_tasks.metrics.subsets.SamplingFrame`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: ClassVar[str] = "subset"

    documents: int = Field(ge=1)
    of_documents: int = Field(ge=1, le=10**9)
    items: int = Field(ge=1, le=10**9)
    spread: float = Field(ge=0.0, allow_inf_nan=False)
    seed: int = Field(ge=0)

    def __str__(self) -> str:
        return f"{self.documents:,} of {self.of_documents:,}"

    @classmethod
    def read(cls, metadata: Any) -> Subset | None:
        """Returns the subset that a task's metadata name, or None; a ValueError says that it has another form."""
        entry = metadata.get(cls.key) if isinstance(metadata, Mapping) else None
        try:
            return None if entry is None else cls.model_validate(entry)
        except ValidationError:
            raise ValueError(f"found {str(entry)[:80]!r} as the subset of a task") from None

    @classmethod
    def from_items(cls, structure: Structure, items: Sequence[int], seed: int) -> Subset:
        """Returns the subset of these items of a structure."""
        frame = population(items, structure.clusters)
        return cls(
            documents=sum(len(structure.documents[item]) for item in items),
            of_documents=sum(map(len, structure.documents)),
            items=frame.items,
            spread=frame.spread,
            seed=seed,
        )

    @property
    def chance(self) -> float:
        """The chance that each document had to be drawn."""
        return self.documents / self.of_documents

    @property
    def frame(self) -> SamplingFrame:
        """The sampling frame, on which its interval depends."""
        return SamplingFrame(self.items, self.spread)


class Structure(NamedTuple):
    """The structure of a draw: the items, their clusters and strata, and the documents of each item, by index."""

    items: Sequence[str]
    clusters: Sequence[str]
    strata: Sequence[str]
    documents: Sequence[Sequence[int]]

    def draw(self, number: int, seed: int = 0) -> list[int]:
        """Draws so many items."""
        return draw(number, self.items, self.clusters, self.strata, seed)


def structure_of(task: str, rows: Sequence[Mapping[str, Any]]) -> Structure:
    """Returns the structure of a task's documents, whose strata are cultures; a cluster with several is in none.

    An item is a document, or a cluster where the metric makes one score of a cluster's documents.
    """
    scorer, culture = scorer_of(task), benchmark_of(task).report().culture
    answers = [scorer.task.score(row, [""]) for row in rows]
    main = next(metric for metric in scorer.task.metrics() if metric.name == scorer.task.metric)
    return structure_from(
        [answer.item for answer in answers],
        [answer.cluster or answer.item for answer in answers],
        [answer.groups.get(culture) for answer in answers],
        whole_clusters=isinstance(main, MeanScore) and main.per_cluster is not None,
    )


def structure_from(
    items: Sequence[str], clusters: Sequence[str], cultures: Sequence[str | None], *, whole_clusters: bool = False
) -> Structure:
    """Returns the structure of documents by the item, the cluster and the culture of each."""
    documents: dict[str, list[int]] = {}
    cultures_of: dict[str, set[str]] = {}
    for index, (cluster, culture) in enumerate(zip(clusters, cultures, strict=True)):
        documents.setdefault(cluster, []).append(index)
        cultures_of.setdefault(cluster, set()).add(culture or "")
    strata = {cluster: min(names) if len(names) == 1 else "" for cluster, names in cultures_of.items()}
    if whole_clusters:
        return Structure(list(documents), list(documents), list(strata.values()), list(documents.values()))
    return Structure(
        items, clusters, [strata[cluster] for cluster in clusters], [[index] for index in range(len(items))]
    )


def draw_subset(task: str, documents: Documents, number: int, seed: int) -> tuple[Documents, Subset | None]:
    """Draws so many of a task's documents, which stay in their order; all of them and None where there are no more."""
    rows = documents.rows
    if number >= len(rows):
        return documents, None
    structure = structure_of(task, rows)
    items = structure.draw(max(1, round(number * len(structure.items) / len(rows))), seed)
    subset = Subset.from_items(structure, items, seed)
    indices = sorted(index for item in items for index in structure.documents[item])
    images = None if documents.images is None else documents.images.select(indices)
    drawn = [{**rows[index], PROBABILITY: subset.chance} for index in indices]
    return replace(documents, rows=drawn, images=images), subset
