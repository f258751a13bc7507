"""The interface of insertion methods.

A method is made with a model and its options, then fitted or loaded where it needs it, and from then on it is one
edited model: ``insert`` adds knowledge, ``ask`` returns the route of a request after that, ``reset`` removes it all.

There are two kinds. Most methods change only the prompt, and the model that answers it: their answers can be generated
later, in any order, and a request that they leave alone has the plain model's answer. Methods that
change weights say so by ``edits_weights``: they change ``self.model.model`` in ``insert``, restore it bit for bit in
``reset``, and their requests are answered while the change is there. Those that derive from
:class:`~culture_tasks.insertion.core.weight_method.WeightMethod` have the requests of several chains answered together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion.core import state, tensor_files
from culture_tasks.insertion.core.adapter import ModelAnswer, MultimodalModel
from culture_tasks.insertion.core.device_meter import forget_peak, now, peak_gib
from culture_tasks.insertion.core.identity import ModelIdentity, value_key
from culture_tasks.insertion.core.progress import Progress, silent
from culture_tasks.insertion.core.queries import AnswerDecoding, Insertion, Query, TrainingCase
from culture_tasks.insertion.core.value_store import ValueStore

if TYPE_CHECKING:
    from culture_tasks.insertion.core.training import Checkpoints
    from culture_tasks.insertion.core.training_data import TrainingData


class MethodConfig(BaseModel):
    """Options of a method; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Route:
    """The prompt that a request becomes after insertions, and the model that answers it; None means the model itself.

    ``activated`` is the index of the insertion that is used, None if none is or if the method uses all. ``similarity``
    is the highest score of the request, and ``threshold`` the least score that activates; None if nothing was compared.
    """

    query: Query
    by: MultimodalModel | None = None
    activated: int | None = None
    similarity: float | None = None
    threshold: float | None = None

    def noted(self, answer: ModelAnswer) -> ModelAnswer:
        """Returns the answer with the scores of its request."""
        return replace(answer, activated=self.activated, similarity=self.similarity, threshold=self.threshold)


@dataclass(frozen=True, slots=True)
class FitContext:
    """Aids of a fit; the store has what is costly to compute, so that a killed fit can resume."""

    store: ValueStore
    progress: Progress = silent
    checkpoints: Checkpoints | None = None


class InsertionMethod(ABC):
    """One method over one model.

    Attributes:
        name: Name of the method, and of its folder.
        config_class: Class of its options.
        needs_state: Whether it must be fitted or loaded before use.
        inserts: Whether insertions can change its answers at all.
        edits_weights: Whether insertions change the model itself.
        other_models: Options that name models which it loads beside the model, such as an encoder.
        answers_version: Raise it whenever a change of the code changes an answer: stored answers of older versions
            are not used then, and states that they fitted are refused.
        batch_size: Requests that are computed together, wherever the method computes with a model.
        data: The data that it was fitted on, or None.
        report: Measurements of the fit.
    """

    name: ClassVar[str]
    config_class: ClassVar[type[MethodConfig]]
    needs_state: ClassVar[bool]
    inserts: ClassVar[bool] = True
    edits_weights: ClassVar[bool] = False
    other_models: ClassVar[tuple[str, ...]] = ()
    answers_version: ClassVar[int]

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        self.model = model
        self.config = self.config_class() if config is None else config
        self.batch_size = 1
        self.data: state.DataFacts | None = None
        self.report: Mapping[str, Any] = {}
        self._description: state.Description | None = None

    @classmethod
    def read_config(cls, options: Mapping[str, object]) -> MethodConfig:
        """Makes options of the method."""
        fields = cls.config_class.model_fields
        try:
            return cls.config_class.model_validate(dict(options))
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            option = ".".join(str(part) for part in problem["loc"])
            hint = nearest(option, fields) if option not in fields else ""
            raise SettingsError(
                f"insertion: option {option}={problem['input']!r} of {cls.name}: {problem['msg']}.{hint} "
                f"Options: {', '.join(fields) or 'none'}."
            ) from None

    @abstractmethod
    def insert(self, insertion: Insertion) -> None:
        """Adds one insertion sample to those that are there."""

    @abstractmethod
    def reset(self) -> None:
        """Removes all insertions; what was fitted stays."""

    def prepare(  # noqa: B027 - nothing has to be prepared
        self,
        requests: Sequence[Query],
        insertions: Sequence[Insertion],
        store: ValueStore,
        progress: Progress = silent,
    ) -> None:
        """Computes ahead, in batches, what :meth:`insert` and :meth:`ask` will need, which else compute it one by one.

        The store keeps what is costly to compute, by model and input, so that no run computes it again.
        """

    def ask(self, query: Query) -> Route:
        """Returns the route of a request after all insertions."""
        return Route(query)

    def generate(self, query: Query, decoding: AnswerDecoding) -> ModelAnswer:
        """Answers a request after all insertions, on its own."""
        route = self.ask(query)
        return route.noted((route.by or self.model).generate(route.query, decoding))

    def fit(
        self,
        data: TrainingData,
        store: ValueStore,
        progress: Progress = silent,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        """Learns from training cases.

        The store has what is costly to compute, so that a killed fit can resume, and so have the checkpoints of a
        training by gradients, which the caller clears when the state is saved.
        """
        if not self.needs_state:
            raise CultureTasksError(f"insertion: {self.name} has nothing to fit. Use it without a state.")
        if checkpoints is not None:
            # All that a training depends on, so that no other continues from its checkpoint.
            facts = [self.name, self.answers_version, self.config.model_dump(mode="json"), data.facts.model_dump()]
            checkpoints = replace(checkpoints, key=value_key([*facts, self.model.identity.run]))
        continues, hits = checkpoints is not None and checkpoints.file.exists(), store.hits
        forget_peak()
        start = now(self.model.device)
        report = self._fit(data.cases, FitContext(store, progress, checkpoints))
        self.report = {
            **report,
            "cases": len(data.cases),
            # A fit that continues an earlier one, or finds its features, tells nothing of how long a fit takes.
            "seconds": None if continues or store.hits > hits else now(self.model.device) - start,
            "peak_gib": peak_gib(self.model.device),
        }
        self.data, self._description = data.facts, None

    def save(self, folder: Path) -> state.Description:
        """Writes the fitted state."""
        description = self._describe()
        state.write(folder, description, self._tensors())
        return description

    def load(self, folder: Path) -> state.Description:
        """Reads a fitted state, options too; ``StateError`` if it is broken, or of another method, version or model."""
        description, tensors = state.read(folder)
        if description.method != self.name:
            raise state.StateError(
                f"{folder}: holds a state of {description.method!r}, not of {self.name!r}. "
                f"Use method={description.method}, or name another folder."
            )
        if description.version != self.answers_version:
            raise state.StateError(
                f"{folder}: fitted by version {description.version} of {self.name}, and this is version "
                f"{self.answers_version}. Fit the method again."
            )
        state.check_model(folder, description.fitted_model, self.model.identity)
        try:
            self.config = self.read_config(description.config)
        except SettingsError as error:
            raise state.StateError(f"{folder}: {error} Fit the method again.") from None
        self._restore(tensors, description.facts)
        state.check_model(folder, description.replacement, self._replacement(), "replacement model")
        self.data, self.report, self._description = description.data, dict(description.report), description
        return description

    @property
    def fingerprint(self) -> str:
        """Hash of all of the method that can change an answer: its name, its options and what it learned."""
        if self.data is not None:
            return self._describe().fingerprint
        return value_key([self.name, self.config.model_dump(mode="json")])[:32]

    def parameter_count(self) -> int:
        """Parameters that the method loads besides the model's."""
        return 0

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        """Learns, and returns measurements."""
        raise NotImplementedError(f"{self.name} says that it needs a state, and has no _fit")

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Returns the tensors of the fitted state."""
        return {}

    def _facts(self) -> dict[str, Any]:
        """Returns the rest of the fitted state, as JSON."""
        return {}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        """Restores the results of :meth:`_tensors` and :meth:`_facts`."""
        raise NotImplementedError(f"{self.name} has a state, and no _restore")

    def _replacement(self) -> ModelIdentity | None:
        """Returns the identity of a second model that the method loaded, as it was before anything was trained."""
        return None

    def _describe(self) -> state.Description:
        """Returns the description of the state, whose tensors are hashed once."""
        if self.data is None:
            raise CultureTasksError(f"insertion: {self.name} was not fitted, so there is nothing to save. Call fit().")
        if self._description is None:
            identity, replacement = self.model.identity, self._replacement()
            self._description = state.Description(
                method=self.name,
                version=self.answers_version,
                config=self.config.model_dump(mode="json"),
                model=identity.source,
                weights=identity.weights,
                parts=dict(identity.parts),
                replacement=None if replacement is None else state.ModelFacts.of(replacement),
                data=self.data,
                facts=self._facts(),
                report=dict(self.report),
                tensors=tensor_files.digest(self._tensors()),
            )
        return self._description
