"""MCKI: a memory of insertion samples, and a router that decides whether a request uses one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from culture_tasks import prompt_files
from culture_tasks.errors import DataError
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.devices import read_ahead
from culture_tasks.insertion.core.edit_scopes import StoredEdit, nearest_edit, stored_vectors
from culture_tasks.insertion.core.insertion_method import FitContext, InsertionMethod, MethodConfig, Prompt
from culture_tasks.insertion.core.requests import Insertion, Part, Request, TrainingCase, image_part, text_part
from culture_tasks.insertion.core.store import Store
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
        self._features: dict[Request, torch.Tensor] = {}
        self._renew_router()

    def prepare(self, requests: Sequence[Request], insertions: Sequence[Insertion], store: Store) -> None:
        """Computes the features of all requests and insertions."""
        everything = [*requests, *(insertion.request for insertion in insertions)]
        self._features = self._features_of(everything, store)

    def insert(self, insertion: Insertion) -> None:
        """Writes one entry: the router key of (i_j, q_j), and the sample (section 4.1)."""
        self._memory.append((self._vector_of(insertion.request), insertion))

    def reset(self) -> None:
        """Empties the memory."""
        self._memory.clear()

    def prompt(self, request: Request) -> Prompt:
        """Decides by equation 3: the request alone below the threshold, otherwise with the nearest entry before it."""
        if not self._memory:
            return Prompt(request)
        place, score = nearest_edit(self._memory, self._vector_of(request), similarities)
        notes = {"similarity": float(score), "threshold": self.threshold}
        if notes["similarity"] < self.threshold:
            return Prompt(request, notes=notes)
        return Prompt(request.preceded_by(self._wrap(self._memory[place][1])), notes={**notes, "activated": place})

    def parameter_count(self) -> int:
        """Parameters of the router."""
        return sum(parameter.numel() for parameter in self._router.parameters())

    def _renew_router(self) -> None:
        width = int(self.model.model.config.get_text_config().hidden_size)
        self._router = make_router(width, self.config.route_dim, self.config.seed)
        self._router.to(self.model.device).eval()

    def _features_of(self, requests: Sequence[Request], store: Store, title: str = "") -> dict[Request, torch.Tensor]:
        distinct = dict.fromkeys(requests)
        keys = dict(zip(distinct, read_ahead(distinct, lambda request: request.key), strict=True))
        inputs: dict[str, Request] = {}
        for request, key in keys.items():
            inputs.setdefault(key, request)
        prefix = f"features:{self.model.identity.run}"
        found = stored_vectors(store, prefix, inputs, self.model.features_of, self.batch_size, title)
        return {request: found[key].reshape(2, -1) for request, key in keys.items()}

    def _vector_of(self, request: Request) -> torch.Tensor:
        """Returns the router vector of a request, from prepared features or from features computed now."""
        features = self._features.get(request)
        with torch.no_grad():
            vector: torch.Tensor = self._router(
                next(self.model.features_of([request]))[0][1] if features is None else features
            )
        return vector

    def _wrap(self, entry: Insertion) -> list[Part]:
        """Returns Wrap(e) of equation 2 as parts of a message."""
        prompt = prompt_files.load(__package__, WRAP)
        text = text_part(prompt.fill({"question": entry.request.question, "answer": entry.answer}) + "\n\n")
        images = [image_part(picture) for picture in entry.request.pictures()] if self.config.wrap_image else []
        return [*images, text]

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        if not any(case.locality for case in cases):
            raise DataError("mcki: no training case has a locality item. The router needs negatives.")
        requests = dict.fromkeys(request for case in cases for request in case.requests())
        features = self._features_of(list(requests), context.store, "features")
        router_cases = [
            RouterCase(
                [features[request] for request in case.requests()],
                torch.tensor([self.config.weight_of(item.kind) for item in case.locality]),
            )
            for case in cases
        ]
        self._renew_router()
        loss = train(self._router, router_cases, self.config)
        self.threshold, accuracy = calibrate(*scores(self._router, router_cases))
        return {
            "requests": len({request.key for request in requests}),
            "loss": loss,
            "threshold": self.threshold,
            "training_accuracy": accuracy,
        }

    def _tensors(self) -> dict[str, torch.Tensor]:
        return dict(self._router.state_dict())

    def _facts(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "wrap": prompt_files.load(__package__, WRAP).sha256}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        self._renew_router()
        self._router.load_state_dict(dict(tensors))
        self.threshold = float(facts["threshold"])
