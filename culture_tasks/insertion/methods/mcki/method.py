"""MCKI: a memory of insertion samples, and a router that decides whether a request uses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch

from culture_tasks import prompt_files
from culture_tasks.errors import DataError
from culture_tasks.insertion.adapter import Answer, MultimodalModel
from culture_tasks.insertion.checkpoints import Checkpoints
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.insertion_method import Asked, InsertionMethod, MethodConfig
from culture_tasks.insertion.methods.mcki.config import MckiConfig
from culture_tasks.insertion.methods.mcki.features import FeatureTable, feature_table, features_by_key
from culture_tasks.insertion.methods.mcki.router import Match, Memory, make_router
from culture_tasks.insertion.methods.mcki.router_training import Scores, calibrate, case_rows, scores, train
from culture_tasks.insertion.prefill import Features
from culture_tasks.insertion.progress import Progress, silent
from culture_tasks.insertion.queries import Insertion, Query, TrainingCase, image_part, text_part
from culture_tasks.insertion.state import StateError
from culture_tasks.insertion.value_store import ValueStore

WRAP = "wrap.v1"


class MckiMethod(InsertionMethod):
    """Section 4 and Appendix D of the paper.

    Args:
        model: The model, which stays frozen.
        config: Options.
    """

    name: ClassVar[str] = "mcki"
    config_class: ClassVar[type[MethodConfig]] = MckiConfig
    needs_state: ClassVar[bool] = True
    answers_version: ClassVar[int] = 1
    config: MckiConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._memory = Memory()
        self._vectors: dict[str, torch.Tensor] = {}
        self._threshold = 1.0
        self._renew_router()

    @property
    def threshold(self) -> float:
        """Tau of equation 3."""
        return self._threshold

    def prepare(
        self,
        requests: Sequence[Query],
        insertions: Sequence[Insertion],
        kept: ValueStore,
        progress: Progress = silent,
    ) -> None:
        """Computes the router vectors of all requests and insertions, from features that the store keeps."""
        queries = [*requests, *(insertion.query for insertion in insertions)]
        for key, features in features_by_key(self.model, queries, kept, self.batch_size, progress):
            self._vectors[key] = self._vector(Features(features[0], features[1]))

    def insert(self, insertion: Insertion) -> None:
        """Writes one entry: the router key of (i_j, q_j), and the sample (section 4.1)."""
        self._memory.write(self._vector_of(insertion.query), insertion)

    def reset(self) -> None:
        """Empties the memory."""
        self._memory.clear()

    def ask(self, query: Query) -> Asked:
        """Decides by equation 3: the request alone below the threshold, otherwise with the nearest entry before it."""
        if not len(self._memory):
            return Asked(query)
        return self._decided(query, self._memory.nearest(self._vector_of(query)))

    def generate(self, query: Query, decoding: Decoding) -> Answer:
        """Answers as :meth:`ask` decides, with one prefill where the entry isn't used.

        Below the threshold decoding continues from the prefill that gave the features; otherwise it starts again.
        """
        if not len(self._memory):
            return self.model.generate(query, decoding)
        decisions: list[Asked] = []

        def activates(features: Features) -> bool:
            decisions.append(self._decided(query, self._memory.nearest(self._vector(features))))
            return decisions[0].activated is not None

        answer = self.model.generate_unless(query, decoding, activates)
        asked = decisions[0]
        if answer is None:
            answer = self.model.generate(asked.query, decoding)
        return replace(answer, activated=asked.activated, similarity=asked.similarity, threshold=asked.threshold)

    def routing_accuracy(self, cases: Sequence[TrainingCase], kept: ValueStore) -> float:
        """Returns the share of requests that the threshold puts on the right side of their case's entry, 0 to 1.

        The inserted request itself is left out: its score is 1 whatever the router.
        """
        found = self._scores(cases, self._table(cases, kept, silent))
        right = sum(score >= self._threshold for score in found.positive) - len(cases)
        right += sum(score < self._threshold for score in found.negative)
        return right / (len(found.positive) - len(cases) + len(found.negative))

    def parameter_count(self) -> int:
        """Parameters of the router."""
        return sum(parameter.numel() for parameter in self._router.parameters())

    def _renew_router(self) -> None:
        self._router = make_router(self.model.hidden_size, self.config.route_dim, self.config.seed)
        self._router.to(self.model.device).eval()
        self._vectors.clear()

    def _vector(self, features: Features) -> torch.Tensor:
        device = self.model.device
        with torch.no_grad():
            vector: torch.Tensor = self._router(features.question.to(device), features.visual.to(device))
        return vector

    def _vector_of(self, query: Query) -> torch.Tensor:
        """Returns the router vector of a request: the prepared one, or computed now."""
        prepared = self._vectors.get(query.key)
        return self._vector(self.model.features(query)) if prepared is None else prepared

    def _decided(self, query: Query, match: Match) -> Asked:
        activates = match.similarity >= self._threshold
        return Asked(
            query.preceded_by(self._wrapped(match.entry)) if activates else query,
            activated=match.place if activates else None,
            similarity=match.similarity,
            threshold=self._threshold,
        )

    def _wrapped(self, entry: Insertion) -> list[dict[str, Any]]:
        """Returns Wrap(e) of equation 2 as parts of a message."""
        prompt = prompt_files.load(__package__, WRAP)
        text = text_part(prompt.fill({"question": entry.query.question, "answer": entry.answer}) + "\n\n")
        images = [image_part(picture) for picture in entry.query.pictures()] if self.config.wrap_image else []
        return [*images, text]

    def _table(self, cases: Sequence[TrainingCase], kept: ValueStore, progress: Progress) -> FeatureTable:
        queries = [query for case in cases for query in case.queries()]
        table = feature_table(self.model, queries, kept, self.batch_size, progress)
        device = self.model.device
        return FeatureTable(table.question.to(device), table.visual.to(device), table.row_of)

    def _scores(self, cases: Sequence[TrainingCase], table: FeatureTable) -> Scores:
        return scores(self._router, table, [case_rows(case, table, self.config) for case in cases])

    def _fit(
        self,
        cases: Sequence[TrainingCase],
        kept: ValueStore,
        progress: Progress,
        checkpoints: Checkpoints | None,  # noqa: ARG002 - training on stored features takes seconds
    ) -> dict[str, Any]:
        if not any(case.locality for case in cases):
            raise DataError("mcki: no training case has a locality item. The router needs negatives.")
        table = self._table(cases, kept, progress)
        self._renew_router()
        rows = [case_rows(case, table, self.config) for case in cases]
        loss = train(self._router, table, rows, self.config, progress)
        found = scores(self._router, table, rows)
        calibration = calibrate(found.positive, found.negative)
        self._threshold = calibration.threshold
        return {
            "requests": len(table.row_of),
            "loss": loss,
            "threshold": calibration.threshold,
            "training_accuracy": calibration.accuracy,
        }

    def _tensors(self) -> dict[str, torch.Tensor]:
        return dict(self._router.state_dict())

    def _facts(self) -> dict[str, Any]:
        return {"threshold": self._threshold, "wrap": prompt_files.load(__package__, WRAP).sha256}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        self._renew_router()
        try:
            self._router.load_state_dict(dict(tensors))
            self._threshold = float(facts["threshold"])
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"mcki: the state doesn't fit its own options ({error}). Fit the method again.") from None
