"""Methods that leave the model alone and let a replacement model answer within the scope of an edit.

SERAC and MSCKE differ only in what they compare, which their folders say. They have in common:

* Every sample is kept in a memory. A request goes to the edit with the highest scope score; from the threshold on the
  replacement model answers it, with that edit's question and answer before it. Otherwise the model itself answers, as
  if nothing had been inserted. Of several edits only one is used.
* The encoder stays frozen. Trained are a linear map of its vectors, the classifier, and one layer of the replacement
  model. They share no weights, so that each learns as if it were alone.
* The classifier learns that the inserted request itself and the generality items are in scope and the locality items
  are not (the mean of their binary cross-entropies). The replacement model learns to answer the former as the data do,
  with the edit before them (the mean of their answers' negative log-likelihoods).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import nn

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.core.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.core.edit_scopes import (
    ScopeEncoder,
    StoredEdit,
    Subject,
    edit_subject,
    edit_text,
    nearest_edit,
    request_subject,
    scope_loss,
    squared_distances,
)
from culture_tasks.insertion.core.encoding import EncodedBatch
from culture_tasks.insertion.core.insertion_method import FitContext, InsertionMethod, MethodConfig, Prompt
from culture_tasks.insertion.core.requests import Insertion, Request, TrainingCase, text_part
from culture_tasks.insertion.core.state import ModelIdentity
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.training import GradientConfig, Learner, ParameterGroup, full_precision, train
from culture_tasks.insertion.core.weight_edits import decoder_layer, with_weights

REPLACEMENTS: Mapping[str, str] = {
    "internvl": "OpenGVLab/InternVL3_5-1B-HF",
    "qwen3_5": "Qwen/Qwen3.5-0.8B",
}
"""The paper's replacement models (Table 5), by the architecture (``model_type``) of the model beside them."""

_PREFIX, _PROJECTION = "replacement.", "classifier.projection"  # names of weights in states and checkpoints


class ScopedConfig(GradientConfig):
    """Options of all methods with a scope classifier and a replacement model (Table 5).

    Attributes:
        replacement: The replacement model, on the Hub or in a folder; None takes the paper's for the architecture of
            the model under evaluation, where it has one.
        replacement_layer: Layer of its language model that is trained; -1 is the last, the paper's choice (27 of
            InternVL3_5-1B-HF, 23 of Qwen3.5-0.8B).
        threshold: Scope score from which the replacement model answers.
        classifier_learning_rate: Of the linear map of the encoder's vectors.
        replacement_learning_rate: Of the replacement model's layer.
    """

    replacement: str | None = None
    replacement_layer: int = -1
    threshold: float = Field(default=0.5, gt=0, le=1)
    classifier_learning_rate: float = Field(default=1e-4, gt=0)
    replacement_learning_rate: float = Field(default=1e-5, gt=0)


@dataclass(frozen=True)
class Parts:
    """The models of a method.

    ``projection`` is the classifier's linear map of the encoder's vectors; it has no bias, which would cancel out in
    distances. ``layer`` has the weights of the replacement model that are trained. ``identity`` is that of the
    replacement model as it was loaded, its own that of its present weights.
    """

    encoder: ScopeEncoder
    projection: nn.Parameter
    replacement: MultimodalModel
    identity: ModelIdentity
    layer: Mapping[str, nn.Parameter]

    def mapped(self, subjects: Sequence[Subject]) -> torch.Tensor:
        """Returns the mapped vectors of edits or requests, shape (subjects, width)."""
        return self.encoder.vectors(subjects).to(self.projection.device) @ self.projection.T

    def distances(self, case: TrainingCase) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the squared distances of a case's requests to its edit, and which of them are in its scope."""
        edit = self.mapped([edit_subject(case.insertion)])
        requests = self.mapped([request_subject(request) for request in case.requests()])
        inside = torch.arange(len(requests), device=requests.device) <= len(case.generality)
        return squared_distances(edit, requests), inside

    def take(self, layer: Mapping[str, torch.Tensor]) -> None:
        """Puts trained weights into the replacement model, or raises ``ValueError`` if they aren't this model's."""
        shapes = {name: weight.shape for name, weight in self.layer.items()}
        if {name: weight.shape for name, weight in layer.items()} != shapes:
            raise ValueError(f"they are not the weights of the layer that is trained of {self.identity.source!r}")
        for name, weight in self.layer.items():
            weight.data.copy_(layer[name])
        self.replacement.identity = self.identity.with_weights(self.layer)


class ScopedMethod(InsertionMethod, Learner[TrainingCase]):
    """A memory of edits, a scope classifier and a replacement model, of whose layer float32 copies are trained."""

    needs_state: ClassVar[bool] = True
    config: ScopedConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._memory: list[StoredEdit] = []
        self._loaded: Parts | None = None
        self._copies: dict[str, nn.Parameter] = {}

    @abstractmethod
    def _make_encoder(self) -> ScopeEncoder:
        """Loads the encoder that the options name."""

    def prepare(self, requests: Sequence[Request], insertions: Sequence[Insertion], store: Store) -> None:
        """Computes the encoder's vectors of requests and edits in batches."""
        subjects = [*map(request_subject, requests), *map(edit_subject, insertions)]
        self.parts.encoder.prepare(subjects, store, self.batch_size)

    def insert(self, insertion: Insertion) -> None:
        """Writes an edit to the memory."""
        self._memory.append((self.parts.mapped([edit_subject(insertion)])[0].detach(), insertion))

    def reset(self) -> None:
        """Empties the memory."""
        self._memory.clear()

    def prompt(self, request: Request) -> Prompt:
        """Goes to the replacement model, after the nearest edit, if its score reaches the threshold."""
        if not self._memory:
            return Prompt(request)
        vector = self.parts.mapped([request_subject(request)])[0].detach()
        place, nearness = nearest_edit(self._memory, vector, lambda *vectors: -squared_distances(*vectors))
        score, threshold = float(torch.exp(nearness)), self.config.threshold
        notes = {"similarity": score, "threshold": threshold}
        if score < threshold:
            return Prompt(request, notes=notes)
        shown = shown_after(self._memory[place][1], request)
        return Prompt(shown, self.parts.replacement, {**notes, "activated": place})

    def scope_accuracy(self, cases: Sequence[TrainingCase]) -> float:
        """Returns the share of requests that the threshold puts on the right side of their case's edit, 0 to 1."""
        right: list[bool] = []
        for case in cases:
            distances, in_scope = self.parts.distances(case)
            right += ((torch.exp(-distances.detach()) >= self.config.threshold) == in_scope).tolist()
        return sum(right) / len(right)

    def parameter_count(self) -> int:
        """Parameters of the encoder, the classifier and the replacement model."""
        parts = self.parts
        replacement: int = sum(weight.numel() for weight in parts.replacement.model.parameters())
        return parts.encoder.parameters + int(parts.projection.numel()) + replacement

    @property
    def parts(self) -> Parts:
        """The models, once they are fitted or loaded."""
        if self._loaded is None:
            raise CultureTasksError(f"{self.name}: was neither fitted nor loaded. Call fit() or load() first.")
        return self._loaded

    def groups(self) -> Sequence[ParameterGroup]:
        """The linear map, and the copies of the layer's weights."""
        return (
            ({_PROJECTION: self.parts.projection}, self.config.classifier_learning_rate),
            (_with_prefix(self._copies), self.config.replacement_learning_rate),
        )

    def read(self, case: TrainingCase) -> tuple[TrainingCase, list[EncodedBatch]]:
        """Reads and encodes the sample and the generality items, each after the sample."""
        items = (case.insertion, *case.generality)
        after = [Insertion(shown_after(case.insertion, item.request), item.answer) for item in items]
        return case, self.parts.replacement.encode_in_batches(after, self.batch_size)

    def learn(self, case: tuple[TrainingCase, list[EncodedBatch]], scale: float) -> Mapping[str, float]:
        """Adds the gradients of a case to either part, batch by batch."""
        parts, (read, batches) = self.parts, case
        count, total = sum(len(batch.prompts) for batch in batches), 0.0
        for batch in batches:
            rounded = {name: weight.to(parts.layer[name].dtype) for name, weight in self._copies.items()}
            score = parts.replacement.answer_scorer(batch)
            loss = with_weights(parts.replacement.model, rounded, score).losses().sum() / count
            with full_precision(loss.device):
                (scale * loss).backward()
            total += float(loss.detach())
        with full_precision(parts.projection.device):  # distances need it too
            of_scopes = scope_loss(*parts.distances(read))
            (scale * of_scopes).backward()
        return {"replacement": total, "classifier": float(of_scopes.detach())}

    def _load_parts(self) -> Parts:
        """Forgets everything, loads encoder and replacement model, and begins with an untrained classifier."""
        self.reset()
        self._loaded, config = None, self.config
        encoder = self._make_encoder()
        name = config.replacement or REPLACEMENTS.get(str(self.model.model.config.model_type))
        replacement = load_replacement(name, beside=self.model, method=self.name)
        role = f"replacement_layer, of {replacement.identity.source!r}"
        layer = decoder_layer(replacement.model, config.replacement_layer, method=role)
        weights = dict(replacement.model.get_submodule(layer).named_parameters(prefix=layer))
        projection = nn.Parameter(torch.eye(encoder.width, device=self.model.device), requires_grad=False)
        self._loaded = Parts(encoder, projection, replacement, replacement.identity, weights)
        return self._loaded

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        if not any(case.locality for case in cases):
            raise DataError(f"{self.name}: no training case has a locality item. The classifier needs negatives.")
        parts = self._load_parts()
        requests = dict.fromkeys(request for case in cases for request in case.requests())
        subjects = [*map(request_subject, requests), *(edit_subject(case.insertion) for case in cases)]
        parts.encoder.prepare(subjects, context.store, self.batch_size, "vectors")
        self._copies = {name: nn.Parameter(weight.detach().float().clone()) for name, weight in parts.layer.items()}
        losses = train(self, cases, self.config, context.checkpoints, name=self.name)
        parts.take(self._copies)
        self._copies = {}
        return {"loss": sum(losses.values()), **losses, "training_accuracy": self.scope_accuracy(cases)}

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {_PROJECTION: self.parts.projection, **_with_prefix(self.parts.layer)}

    def _facts(self) -> dict[str, Any]:
        return {"encoder": self.parts.encoder.identity.weights}

    def _replacement(self) -> ModelIdentity | None:
        return None if self._loaded is None else self._loaded.identity

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        parts, layer = self._load_parts(), dict(tensors)
        if facts["encoder"] != parts.encoder.identity.weights:
            raise ValueError(f"{parts.encoder.identity.source!r} is not the encoder: its weights or settings differ")
        parts.projection.data.copy_(layer.pop(_PROJECTION))
        parts.take({name.removeprefix(_PREFIX): tensor for name, tensor in layer.items()})


def _with_prefix(layer: Mapping[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    return {f"{_PREFIX}{name}": weight for name, weight in layer.items()}


def shown_after(edit: Insertion, request: Request) -> Request:
    """Returns a request with an edit's question and answer before it, as text; the edit's image isn't shown."""
    return request.preceded_by([text_part(f"{edit_text(edit)}\n")])


def load_replacement(name: str | None, *, beside: MultimodalModel, method: str) -> MultimodalModel:
    """Loads a replacement model with data type, device and options of the model ``beside`` it; None: there is none."""
    if name is None:
        raise SettingsError(
            f"{method}: the paper has no replacement model for {beside.identity.source!r} (architecture "
            f"{beside.model.config.model_type!r}). Name a smaller model of the same family: --set replacement=MODEL."
        )
    dtype, settings = str(beside.model.dtype).removeprefix("torch."), beside.encoding.settings
    options = ModelOptions(dtype=dtype, device=str(beside.device), **settings["template"], **settings["images"])
    try:
        return MultimodalModel.load(name, options)
    except SettingsError as error:
        raise SettingsError(
            f"{method}: the replacement model can't be used. {error} The option replacement=MODEL names it."
        ) from error
