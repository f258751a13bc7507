"""Methods that leave the model alone and let a replacement model answer within the scope of an edit.

SERAC and MSCKE differ only in what they compare, which their folders say. They have in common:

* Every sample is kept in a memory. A request goes to the edit with the highest scope score; from the threshold on the
  replacement model answers it, with that edit's question and answer before it. Otherwise the model itself answers, as
  if nothing had been inserted. Of several edits only one is used.
* The encoder stays frozen. Trained are a linear map of its vectors and one layer of the replacement model.
* The classifier learns that the inserted request itself and the generality items are in scope and the locality items
  are not (the mean of their binary cross-entropies). The replacement model learns to answer the former as the data do,
  with the edit before them (the mean of their answers' negative log-likelihoods). They share no weights, so each is
  trained on its own, and a layer that one method has trained is found by the other in the store of the fit.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import safetensors.torch
import torch
from accelerate.utils import gather_object
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
from culture_tasks.insertion.core.state import ModelIdentity, value_key
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.training import (
    CaseLosses,
    GradientConfig,
    Learner,
    ParameterGroup,
    full_precision,
    train,
)
from culture_tasks.insertion.core.weight_edits import decoder_layer, with_weights

REPLACEMENTS: Mapping[str, str] = {
    "internvl": "OpenGVLab/InternVL3_5-1B-HF",
    "qwen3_5": "Qwen/Qwen3.5-0.8B",
}
"""The paper's replacement models (Table 5), by the architecture (``model_type``) of the model beside them."""

_PREFIX, _PROJECTION = "replacement.", "classifier.projection"  # names of weights in states and checkpoints
_LAYER_VERSION = 1  # raise it whenever a change of the code changes what a replacement model learns


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

    @property
    def layer_options(self) -> dict[str, Any]:
        """The options that the training of the replacement model's layer depends on."""
        names = {*GradientConfig.model_fields, "replacement_layer", "replacement_learning_rate"}
        return self.model_dump(mode="json", include=names)


class ScopedMethod(InsertionMethod):
    """A memory of edits, a scope classifier and a replacement model."""

    needs_state: ClassVar[bool] = True
    config: ScopedConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._memory: list[StoredEdit] = []
        self._loaded: _Parts | None = None

    @abstractmethod
    def _make_encoder(self) -> ScopeEncoder:
        """Loads the encoder that the options name."""

    def prepare(self, requests: Sequence[Request], insertions: Sequence[Insertion], store: Store) -> None:
        """Computes the encoder's vectors of requests and edits in batches."""
        subjects = [*map(request_subject, requests), *map(edit_subject, insertions)]
        self._parts.encoder.prepare(subjects, store, self.batch_size)

    def insert(self, insertion: Insertion) -> None:
        """Writes an edit to the memory."""
        self._memory.append((self._parts.mapped([edit_subject(insertion)])[0].detach(), insertion))

    def reset(self) -> None:
        """Empties the memory."""
        self._memory.clear()

    def prompt(self, request: Request) -> Prompt:
        """Goes to the replacement model, after the nearest edit, if its score reaches the threshold."""
        if not self._memory:
            return Prompt(request)
        vector = self._parts.mapped([request_subject(request)])[0].detach()
        match = nearest_edit(self._memory, vector, lambda *vectors: -squared_distances(*vectors))
        score, threshold = float(torch.exp(match.score)), self.config.threshold
        notes = {"similarity": score, "threshold": threshold}
        if score < threshold:
            return Prompt(request, notes=notes)
        shown = shown_after(match.edit, request)
        return Prompt(shown, self._parts.replacement.model, {**notes, "activated": match.place})

    def scope_accuracy(self, cases: Sequence[TrainingCase]) -> float:
        """Returns the share of requests that the threshold puts on the right side of their case's edit, 0 to 1.

        These are the inserted request itself, the generality items and the locality items of each case.
        """
        right: list[bool] = []
        for case in cases:
            distances, in_scope = self._parts.distances(case)
            right += ((torch.exp(-distances.detach()) >= self.config.threshold) == in_scope).tolist()
        return sum(right) / len(right)

    def parameter_count(self) -> int:
        """Parameters of the encoder, the classifier and the replacement model."""
        parts = self._parts
        replacement: int = sum(weight.numel() for weight in parts.replacement.model.model.parameters())
        return parts.encoder.parameters + int(parts.projection.numel()) + replacement

    @property
    def _parts(self) -> _Parts:
        if self._loaded is None:
            raise CultureTasksError(f"{self.name}: was neither fitted nor loaded. Call fit() or load() first.")
        return self._loaded

    def _load_parts(self) -> _Parts:
        """Forgets everything, loads encoder and replacement model, and begins with an untrained classifier."""
        self.reset()
        self._loaded, config = None, self.config
        encoder = self._make_encoder()
        name = config.replacement or REPLACEMENTS.get(str(self.model.model.config.model_type))
        replacement = load_replacement(name, config.replacement_layer, beside=self.model, method=self.name)
        projection = nn.Parameter(torch.eye(encoder.width, device=self.model.device), requires_grad=False)
        return _Parts(encoder, projection, replacement, config.classifier_learning_rate)

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        if not any(case.locality for case in cases):
            raise DataError(f"{self.name}: no training case has a locality item. The classifier needs negatives.")
        parts, config = self._load_parts(), self.config
        requests = dict.fromkeys(request for case in cases for request in case.requests())
        subjects = [*map(request_subject, requests), *(edit_subject(case.insertion) for case in cases)]
        parts.encoder.prepare(subjects, context.store, self.batch_size, context.progress)
        losses, layer = parts.replacement.train(cases, config, context, batch_size=self.batch_size, method=self.name)
        losses |= train(parts, cases, config, replace(context, checkpoints=None), name=self.name)
        parts.replacement.take(layer)
        self._loaded = parts
        return {"loss": sum(losses.values()), **losses, "training_accuracy": self.scope_accuracy(cases)}

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {_PROJECTION: self._parts.projection, **_with_prefix(self._parts.replacement.trained)}

    def _facts(self) -> dict[str, Any]:
        return {"encoder": self._parts.encoder.identity.weights}

    def _replacement(self) -> ModelIdentity | None:
        return None if self._loaded is None else self._loaded.replacement.identity

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        parts, layer = self._load_parts(), dict(tensors)
        if facts["encoder"] != parts.encoder.identity.weights:
            raise ValueError(f"{parts.encoder.identity.source!r} is not the encoder: its weights or settings differ")
        parts.projection.copy_(layer.pop(_PROJECTION))
        parts.replacement.take({name.removeprefix(_PREFIX): tensor for name, tensor in layer.items()})
        self._loaded = parts


@dataclass(frozen=True)
class _Parts(Learner[TrainingCase]):
    """The models of a fitted method, and the training of the classifier, in place.

    The projection is the classifier's linear map of the encoder's vectors. It has no bias, which would cancel out in
    distances.
    """

    encoder: ScopeEncoder
    projection: nn.Parameter
    replacement: ReplacementModel
    learning_rate: float

    def mapped(self, subjects: Sequence[Subject]) -> torch.Tensor:
        """Returns the mapped vectors of edits or requests, shape (subjects, width)."""
        return self.encoder.vectors(subjects).to(self.projection.device) @ self.projection.T

    def distances(self, case: TrainingCase) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the squared distances of a case's requests to its edit, and which of them are in its scope."""
        edit = self.mapped([edit_subject(case.insertion)])
        requests = self.mapped([request_subject(request) for request in case.requests()])
        inside = torch.arange(len(requests), device=requests.device) <= len(case.generality)
        return squared_distances(edit, requests), inside

    def groups(self) -> Sequence[ParameterGroup]:
        return (ParameterGroup({_PROJECTION: self.projection}, self.learning_rate),)

    def learn(self, case: TrainingCase, scale: float) -> CaseLosses:
        with full_precision(self.projection.device):  # distances need it too
            loss = scope_loss(*self.distances(case))
            (scale * loss).backward()
        return CaseLosses({"classifier": float(loss.detach())})


class ReplacementModel(Learner[TrainingCase]):
    """The second, smaller model, which answers requests that an edit is about, shown after the edit.

    Its layer ``layer`` is trained, whose weights ``trained`` has by name; the rest stays as in the checkpoint. Trained
    are copies of them in float32, in which small steps don't vanish. ``model.identity`` is that of its present weights,
    ``identity`` that of the model as it was loaded.
    """

    def __init__(self, model: MultimodalModel, layer: int) -> None:
        self.model, self.identity = model, model.identity
        name = decoder_layer(model.model, layer, method=f"replacement_layer, of {self.identity.source!r}")
        weights = model.model.get_submodule(name).named_parameters(prefix=name)
        self.trained: dict[str, nn.Parameter] = dict(weights)

    def take(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Puts trained weights into the model, or raises ``ValueError`` if they aren't this model's."""
        shapes = {name: weight.shape for name, weight in self.trained.items()}
        if {name: weight.shape for name, weight in weights.items()} != shapes:
            raise ValueError(f"they are not the weights of the layer that is trained of {self.identity.source!r}")
        with torch.no_grad():
            for name, weight in self.trained.items():
                weight.copy_(weights[name])
        self.model.identity = self.identity.with_weights(self.trained)

    def train(
        self, cases: Sequence[TrainingCase], config: ScopedConfig, context: FitContext, *, batch_size: int, method: str
    ) -> tuple[dict[str, float], Mapping[str, torch.Tensor]]:
        """Trains the layer, or finds it in the store: it doesn't depend on what is compared.

        It returns the mean losses of the last pass, and the weights for :meth:`take`.
        """
        samples = [[item.key for item in (case.insertion, *case.generality)] for case in cases]
        key = f"replacement layer:{value_key([_LAYER_VERSION, self.identity.run, config.layer_options, samples])}"
        stored = context.store.get(key)
        if all(gather_object([stored is not None])) and stored is not None:
            losses, _, layer = stored.partition(b"\n")
            return dict(json.loads(losses)), safetensors.torch.load(layer)
        self._learning_rate, self._batch_size = config.replacement_learning_rate, batch_size
        self._copies = {name: nn.Parameter(weight.detach().float().clone()) for name, weight in self.trained.items()}
        checkpoints = context.checkpoints and replace(context.checkpoints, key=key)
        means = train(self, cases, config, replace(context, checkpoints=checkpoints), name=method)
        trained = {name: weight.detach().cpu() for name, weight in self._copies.items()}
        context.store.put({key: json.dumps(means).encode() + b"\n" + safetensors.torch.save(trained)})
        return means, trained

    def groups(self) -> Sequence[ParameterGroup]:
        """The copies of the layer's weights."""
        return (ParameterGroup(_with_prefix(self._copies), self._learning_rate),)

    def read(self, case: TrainingCase) -> list[EncodedBatch]:
        """Reads and encodes the sample and the generality items, each after the sample."""
        items = (case.insertion, *case.generality)
        shown = [Insertion(shown_after(case.insertion, item.request), item.answer) for item in items]
        return self.model.encode_in_batches(shown, self._batch_size)

    def learn(self, case: list[EncodedBatch], scale: float) -> CaseLosses:
        """Adds the gradients of a case, batch by batch."""
        count, total = sum(len(batch.prompts) for batch in case), 0.0
        for batch in case:
            rounded = {name: weight.to(self.trained[name].dtype) for name, weight in self._copies.items()}
            loss = with_weights(self.model.model, rounded, self.model.answer_scorer(batch)).losses().sum() / count
            with full_precision(loss.device):
                (scale * loss).backward()
            total += float(loss.detach())
        return CaseLosses({"replacement": total})


def _with_prefix(layer: Mapping[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    return {f"{_PREFIX}{name}": weight for name, weight in layer.items()}


def shown_after(edit: Insertion, request: Request) -> Request:
    """Returns a request with an edit's question and answer before it, as text; the edit's image isn't shown."""
    return request.preceded_by([text_part(f"{edit_text(edit)}\n")])


def load_replacement(name: str | None, layer: int, *, beside: MultimodalModel, method: str) -> ReplacementModel:
    """Loads a replacement model with data type, device and options of the model ``beside`` it; None: there is none."""
    if name is None:
        raise SettingsError(
            f"{method}: the paper has no replacement model for {beside.identity.source!r} (architecture "
            f"{beside.model.config.model_type!r}). Name a smaller model of the same family: --set replacement=MODEL."
        )
    dtype, settings = str(beside.model.dtype).removeprefix("torch."), beside.encoding.settings
    options = ModelOptions(dtype=dtype, device=str(beside.device), **settings["template"], **settings["images"])
    try:
        return ReplacementModel(MultimodalModel.load(name, options), layer)
    except SettingsError as error:
        raise SettingsError(
            f"{method}: the replacement model can't be used. {error} The option replacement=MODEL names it."
        ) from error
