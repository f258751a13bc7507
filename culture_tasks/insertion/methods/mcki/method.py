"""MCKI: a memory of insertion samples, and a router that decides whether a request uses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import torch

from culture_tasks import prompt_files
from culture_tasks.errors import DataError
from culture_tasks.insertion.core.adapter import ModelAnswer, MultimodalModel
from culture_tasks.insertion.core.edit_scopes import StoredEdit, StoredVectors, nearest_edit
from culture_tasks.insertion.core.insertion_method import FitContext, InsertionMethod, MethodConfig, Route
from culture_tasks.insertion.core.progress import Progress, silent
from culture_tasks.insertion.core.queries import (
    AnswerDecoding,
    Insertion,
    Part,
    Query,
    TrainingCase,
    image_part,
    read_all,
    text_part,
)
from culture_tasks.insertion.core.state import StateError
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.methods.mcki.router import (
    MckiConfig,
    RouterCase,
    calibrate,
    make_router,
    scores,
    similarities,
    train,
)

WRAP = "wrap.v1"


class MckiMethod(InsertionMethod):
    """Section 4 and Appendix D of the paper."""

    name: ClassVar[str] = "mcki"
    config_class: ClassVar[type[MethodConfig]] = MckiConfig
    needs_state: ClassVar[bool] = True
    answers_version: ClassVar[int] = 1
    config: MckiConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self.threshold = 1.0
        self._memory: list[StoredEdit] = []
        self._features = StoredVectors[Query](
            f"features:{model.identity.run}",
            lambda query: query.key,
            model.features_of,
            shape=(2, -1),
            description="features",
        )
        self._renew_router()

    def prepare(
        self,
        requests: Sequence[Query],
        insertions: Sequence[Insertion],
        store: ValueStore,
        progress: Progress = silent,
    ) -> None:
        """Computes the features of all requests and insertions."""
        queries = [*requests, *(insertion.query for insertion in insertions)]
        self._features.prepare(queries, store, batch_size=self.batch_size, progress=progress)

    def insert(self, insertion: Insertion) -> None:
        """Writes one entry: the router key of (i_j, q_j), and the sample (section 4.1)."""
        self._memory.append((self._vector_of(insertion.query), insertion))

    def reset(self) -> None:
        """Empties the memory."""
        self._memory.clear()

    def ask(self, query: Query) -> Route:
        """Decides by equation 3: the request alone below the threshold, otherwise with the nearest entry before it."""
        return self._route(query, self._vector_of(query)) if self._memory else Route(query)

    def generate(self, query: Query, decoding: AnswerDecoding) -> ModelAnswer:
        """Answers as :meth:`ask` decides, with one prefill where the entry isn't used.

        Below the threshold decoding continues from the prefill that gave the features; otherwise it starts again.
        """
        if not self._memory:
            return self.model.generate(query, decoding)
        routes: list[Route] = []

        def activates(features: torch.Tensor) -> bool:
            routes.append(self._route(query, self._vector_of(query, features)))
            return routes[0].activated is not None

        answer = self.model.generate_unless(query, decoding, activates)
        return routes[0].noted(answer or self.model.generate(routes[0].query, decoding))

    def parameter_count(self) -> int:
        """Parameters of the router."""
        return sum(parameter.numel() for parameter in self._router.parameters())

    def _renew_router(self) -> None:
        width = int(self.model.model.config.get_text_config().hidden_size)
        self._router = make_router(width, self.config.route_dim, self.config.seed)
        self._router.to(self.model.device).eval()

    def _vector_of(self, query: Query, features: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the router vector of a request, by default from prepared features or from features computed now."""
        features = self._features.get(query) if features is None else features
        with torch.no_grad():
            vector: torch.Tensor = self._router(self.model.features(query) if features is None else features)
        return vector

    def _route(self, query: Query, vector: torch.Tensor) -> Route:
        match = nearest_edit(self._memory, vector, similarities)
        similarity = float(match.score)
        if similarity < self.threshold:
            return Route(query, similarity=similarity, threshold=self.threshold)
        activated = query.preceded_by(self._wrap(match.edit))
        return Route(activated, activated=match.place, similarity=similarity, threshold=self.threshold)

    def _wrap(self, entry: Insertion) -> list[Part]:
        """Returns Wrap(e) of equation 2 as parts of a message."""
        prompt = prompt_files.load(__package__, WRAP)
        text = text_part(prompt.fill({"question": entry.query.question, "answer": entry.answer}) + "\n\n")
        images = [image_part(picture) for picture in entry.query.pictures()] if self.config.wrap_image else []
        return [*images, text]

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        if not any(case.locality for case in cases):
            raise DataError("mcki: no training case has a locality item. The router needs negatives.")
        queries = read_all((query for case in cases for query in case.queries()), context.progress)
        self.prepare(queries, [], context.store, context.progress)
        weights = [torch.tensor([self.config.weight_of(item.kind) for item in case.locality]) for case in cases]
        features = [partial(self._features.vectors, case.queries()) for case in cases]
        router_cases = list(map(RouterCase, features, weights))
        self._renew_router()
        loss = train(self._router, router_cases, self.config, context.progress)
        calibration = calibrate(*scores(self._router, router_cases))
        self.threshold = calibration.threshold
        return {
            "requests": len({query.key for query in queries}),
            "loss": loss,
            "threshold": calibration.threshold,
            "training_accuracy": calibration.accuracy,
        }

    def _tensors(self) -> dict[str, torch.Tensor]:
        return dict(self._router.state_dict())

    def _facts(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "wrap": prompt_files.load(__package__, WRAP).sha256}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        self._renew_router()
        try:
            self._router.load_state_dict(dict(tensors))
            self.threshold = float(facts["threshold"])
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"mcki: the state doesn't fit its own options ({error}). Fit the method again.") from None
