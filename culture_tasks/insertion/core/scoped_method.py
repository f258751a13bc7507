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

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import safetensors.torch
import torch
from accelerate.utils import gather_object
from pydantic import Field

from culture_tasks.errors import CultureTasksError, DataError
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.edit_scopes import (
    EditMemory,
    ScopeClassifier,
    ScopeEncoder,
    Subject,
    edit_subject,
    request_subject,
    scope_loss,
    squared_distances,
)
from culture_tasks.insertion.core.encoding import Encoded
from culture_tasks.insertion.core.identity import ModelIdentity
from culture_tasks.insertion.core.insertion_method import FitContext, InsertionMethod, MethodConfig, Route
from culture_tasks.insertion.core.progress import Progress, silent
from culture_tasks.insertion.core.queries import Insertion, Query, TrainingCase, read_all
from culture_tasks.insertion.core.replacement import REPLACEMENTS, ReplacementModel, load_replacement, shown_after
from culture_tasks.insertion.core.state import StateError
from culture_tasks.insertion.core.training import (
    CaseLosses,
    GradientConfig,
    Learner,
    ParameterGroup,
    full_precision,
    train,
)
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.core.weight_edits import decoder_layers
from culture_tasks.insertion.estimates import CaseShape, Models, Work

_PROJECTION = "classifier.projection"
_REPLACEMENT = "replacement."
_REPLACEMENT_OPTIONS = ("replacement_layer", "replacement_learning_rate")
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


class ScopedMethod(InsertionMethod):
    """A memory of edits, a scope classifier and a replacement model.

    Args:
        model: The model, which stays as it is.
        config: Options.
    """

    needs_state: ClassVar[bool] = True
    other_models: ClassVar[tuple[str, ...]] = ("encoder", "replacement")
    config: ScopedConfig

    @classmethod
    def models_of(cls, config: MethodConfig, architecture: str) -> dict[str, str | None]:
        """Returns encoder and replacement model, the paper's for the architecture unless the options name one."""
        names = super().models_of(config, architecture)
        return {**names, "replacement": names["replacement"] or REPLACEMENTS.get(architecture)}

    @classmethod
    def work(cls, config: ScopedConfig, models: Models, cases: CaseShape) -> Work:
        """Passes of the replacement model over the sample and the generality items, and backward through a layer."""
        replacement = models["replacement"]
        layers = decoder_layers(replacement)
        layer = f"{layers[config.replacement_layer]}."
        return Work(
            fit={"replacement": config.epochs * cases.count * (1 + cases.generality) * (1 + 2 / len(layers))},
            shared_fit=repr((config.replacement, _layer_options(config))),
            shown_tokens=64,
            answered_by="replacement",
            leaves_others_alone=True,
            trained=sum(weight.numel() for name, weight in replacement.named_parameters() if name.startswith(layer)),
        )

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._memory = EditMemory(lambda edits, request: -squared_distances(edits, request))
        self._loaded: _Parts | None = None

    @abstractmethod
    def _make_encoder(self) -> ScopeEncoder:
        """Loads the encoder that the options name."""

    def prepare(
        self,
        requests: Sequence[Query],
        insertions: Sequence[Insertion],
        store: ValueStore,
        progress: Progress = silent,
    ) -> None:
        """Computes the encoder's vectors of requests and edits in batches."""
        subjects = [*map(request_subject, requests), *map(edit_subject, insertions)]
        self._parts.encoder.prepare(subjects, store, batch_size=self.batch_size, progress=progress)

    def insert(self, insertion: Insertion) -> None:
        """Writes an edit to the memory."""
        self._memory.write(self._parts.mapped([edit_subject(insertion)])[0].detach(), insertion)

    def reset(self) -> None:
        """Empties the memory."""
        self._memory.clear()

    def ask(self, query: Query) -> Route:
        """Goes to the replacement model, after the nearest edit, if its score reaches the threshold."""
        if not len(self._memory):
            return Route(query)
        match = self._memory.nearest(self._parts.mapped([request_subject(query)])[0].detach())
        score, threshold = float(torch.exp(match.score)), self.config.threshold
        if score < threshold:
            return Route(query, similarity=score, threshold=threshold)
        by = self._parts.replacement.model
        return Route(shown_after(match.edit, query), by, activated=match.place, similarity=score, threshold=threshold)

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
        loaded = (self._parts.classifier, self._parts.replacement.model.model)
        counted: int = sum(weight.numel() for module in loaded for weight in module.parameters())
        return counted + self._parts.encoder.parameter_count()

    @property
    def _parts(self) -> _Parts:
        if self._loaded is None:
            raise CultureTasksError(f"{self.name}: was neither fitted nor loaded. Call fit() or load() first.")
        return self._loaded

    def _load_parts(self) -> _Parts:
        """Forgets everything, loads encoder and replacement model, and begins with an untrained classifier."""
        self.reset()
        self._loaded = None
        encoder = self._make_encoder()
        replacement = load_replacement(
            self.config.replacement, self.config.replacement_layer, beside=self.model, method=self.name
        )
        classifier = ScopeClassifier(encoder.width).requires_grad_(requires_grad=False)
        return _Parts(encoder, classifier.to(self.model.device), replacement)

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        if not any(case.locality for case in cases):
            raise DataError(f"{self.name}: no training case has a locality item. The classifier needs negatives.")
        parts = self._load_parts()
        queries = read_all((query for case in cases for query in case.queries()), context.progress)
        subjects = [*map(request_subject, queries), *(edit_subject(case.insertion) for case in cases)]
        parts.encoder.prepare(subjects, context.store, batch_size=self.batch_size, progress=context.progress)
        learner = _ReplacementLearner(parts.replacement, self.config, self.batch_size)
        classifier = _ClassifierLearner(parts, self.config)
        losses = _train_layer(learner, parts.replacement.identity.run, cases, context, self.name)
        losses |= train(classifier, cases, self.config, name=self.name, progress=context.progress)
        parts.replacement.take(learner.layer)
        self._loaded = parts
        return {"loss": sum(losses.values()), **losses, "training_accuracy": self.scope_accuracy(cases)}

    def _tensors(self) -> dict[str, torch.Tensor]:
        layer = {f"{_REPLACEMENT}{name}": weight for name, weight in self._parts.replacement.trained.items()}
        return {_PROJECTION: self._parts.classifier.projection, **layer}

    def _facts(self) -> dict[str, Any]:
        return {"encoder": self._parts.encoder.identity.weights}

    def _replacement(self) -> ModelIdentity | None:
        return None if self._loaded is None else self._loaded.replacement.identity

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        parts = self._load_parts()
        source = parts.encoder.identity.source
        if facts.get("encoder") != parts.encoder.identity.weights:
            raise StateError(
                f"{self.name}: {source!r} is not the encoder that the state was fitted with: its weights or settings "
                "differ. Put the right one there, or fit the method again."
            )
        layer = {
            name.removeprefix(_REPLACEMENT): tensor for name, tensor in tensors.items() if name.startswith(_REPLACEMENT)
        }
        try:
            parts.classifier.load_state_dict({"projection": tensors[_PROJECTION]})
            parts.replacement.take(layer)
        except (RuntimeError, KeyError, ValueError) as error:
            raise StateError(
                f"{self.name}: the state's weights don't fit the replacement model "
                f"{parts.replacement.identity.source!r} or the encoder {source!r} ({error}). Put the models there that "
                "the state was fitted with, or fit the method again."
            ) from None
        self._loaded = parts


@dataclass(frozen=True, slots=True)
class _Parts:
    """The models of a fitted method.

    Attributes:
        encoder: The frozen encoder.
        classifier: The linear map of its vectors.
        replacement: The model that answers within a scope.
    """

    encoder: ScopeEncoder
    classifier: ScopeClassifier
    replacement: ReplacementModel

    def mapped(self, subjects: Sequence[Subject]) -> torch.Tensor:
        """Returns the mapped vectors of edits or requests, shape (subjects, width)."""
        mapped: torch.Tensor = self.classifier(self.encoder.vectors(subjects))
        return mapped

    def distances(self, case: TrainingCase) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the squared distances of a case's requests to its edit, and which of them are in its scope."""
        edit = self.mapped([edit_subject(case.insertion)])
        requests = self.mapped([request_subject(query) for query in case.queries()])
        inside = torch.arange(len(requests), device=requests.device) <= len(case.generality)
        return squared_distances(edit, requests), inside


class _ClassifierLearner(Learner[TrainingCase]):
    """Trains the classifier in place."""

    def __init__(self, parts: _Parts, config: ScopedConfig) -> None:
        self._parts, self._config = parts, config

    def groups(self) -> Sequence[ParameterGroup]:
        projection = {_PROJECTION: self._parts.classifier.projection}
        return (ParameterGroup(projection, self._config.classifier_learning_rate),)

    def learn(self, case: TrainingCase, scale: float) -> CaseLosses:
        with full_precision(self._parts.classifier.projection.device):  # distances need it too
            loss = scope_loss(*self._parts.distances(case))
            (scale * loss).backward()
        return CaseLosses({"classifier": float(loss.detach())})


class _ReplacementLearner(Learner[TrainingCase]):
    """Trains copies of the replacement model's weights.

    Args:
        replacement: The replacement model.
        config: Options.
        batch_size: How many items are read at a time.
    """

    def __init__(self, replacement: ReplacementModel, config: ScopedConfig, batch_size: int) -> None:
        self._replacement, self.config, self._batch_size = replacement, config, batch_size
        self.layer = replacement.copies()

    def groups(self) -> Sequence[ParameterGroup]:
        layer = {f"{_REPLACEMENT}{name}": weight for name, weight in self.layer.items()}
        return (ParameterGroup(layer, self.config.replacement_learning_rate),)

    def read(self, case: TrainingCase) -> list[Encoded]:
        answered = (case.insertion, *case.generality)
        pairs, size = [(shown_after(case.insertion, item.query), item.answer) for item in answered], self._batch_size
        model = self._replacement.model
        return [model.encode_answered(pairs[start : start + size]) for start in range(0, len(pairs), size)]

    def learn(self, case: list[Encoded], scale: float) -> CaseLosses:
        count, total = sum(len(batch.prompts) for batch in case), 0.0
        for batch in case:
            loss = self._replacement.losses(self.layer, batch).sum() / count
            with full_precision(loss.device):
                (scale * loss).backward()
            total += float(loss.detach())
        return CaseLosses({"replacement": total})


def _layer_options(config: ScopedConfig) -> dict[str, Any]:
    """Returns the options that the replacement model's training depends on."""
    return config.model_dump(mode="json", include={*GradientConfig.model_fields, *_REPLACEMENT_OPTIONS})


def _train_layer(
    learner: _ReplacementLearner, identity: str, cases: Sequence[TrainingCase], context: FitContext, method: str
) -> dict[str, float]:
    """Trains the replacement model's layer, or finds it in the store: it doesn't depend on what is compared.

    Returns:
        The mean losses of the last pass.
    """
    options = _layer_options(learner.config)
    samples = [[item.key for item in (case.insertion, *case.generality)] for case in cases]
    facts = json.dumps([_LAYER_VERSION, identity, options, samples], sort_keys=True)
    key = f"replacement layer:{hashlib.sha256(facts.encode()).hexdigest()}"
    stored = context.store.get(key)
    if all(gather_object([stored is not None])) and stored is not None:
        losses, _, layer = stored.partition(b"\n")
        for name, weight in safetensors.torch.load(layer).items():
            learner.layer[name].data.copy_(weight)
        return dict(json.loads(losses))
    checkpoints = context.checkpoints and replace(context.checkpoints, key=key)
    means = train(learner, cases, learner.config, name=method, progress=context.progress, checkpoints=checkpoints)
    trained = {name: weight.detach().cpu() for name, weight in learner.layer.items()}
    context.store.put(key, json.dumps(means).encode() + b"\n" + safetensors.torch.save(trained))
    return means
