"""The interface of insertion methods.

A method is made with a model and its options, then fitted or loaded where it needs it, and from then on it is one
edited model: ``insert`` adds knowledge, ``prompt`` returns what a request becomes after that, ``reset`` removes it all.

There are two bases. An :class:`InsertionMethod` changes only the prompt, and the model that answers it: a request that
it leaves alone has the plain model's answer. A method that gives weights of the model other values derives from
:class:`~culture_tasks.insertion.core.weight_method.WeightMethod`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.adapter import Answer, MultimodalModel
from culture_tasks.insertion.core.devices import forget_peak, now, peak_gib
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request, TrainingCase
from culture_tasks.insertion.core.state import ModelIdentity, Tensors, value_key
from culture_tasks.insertion.core.store import Store

if TYPE_CHECKING:
    import torch

    from culture_tasks.insertion.core.training import Checkpoints, TrainingData


class MethodConfig(BaseModel):
    """Options of a method; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a request becomes after insertions, and the model that answers it; None is the model itself.

    ``notes`` are facts for the answer: ``activated``, ``similarity`` and ``threshold``. After the insertions of
    ``edits`` the weights are others.
    """

    request: Request
    model: MultimodalModel | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    edits: tuple[Insertion, ...] = ()


@dataclass(frozen=True, slots=True)
class FitContext:
    """Where a fit keeps what is costly to compute, so that a killed one can resume."""

    store: Store
    checkpoints: Checkpoints | None = None


class InsertionMethod(ABC):
    """One method over one model.

    Attributes:
        name: Name of the method, and of its folder.
        config_class: Class of its options.
        needs_state: Whether it must be fitted or loaded before use.
        inserts: Whether insertions can change its answers at all.
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

    def prepare(self, requests: Sequence[Request], insertions: Sequence[Insertion], store: Store) -> None:  # noqa: B027
        """Computes in batches what :meth:`insert` and :meth:`prompt` will need, which else compute it one by one.

        It replaces what was prepared before. The store keeps what is costly, so that no run computes it again.
        """

    def prompt(self, request: Request) -> Prompt:
        """Returns what a request becomes after all insertions."""
        return Prompt(request)

    def generate(self, request: Request, decoding: AnswerDecoding) -> Answer:
        """Answers a request after all insertions, on its own."""
        prompt = self.prompt(request)
        return replace((prompt.model or self.model).generate(prompt.request, decoding), **prompt.notes)

    def fit(self, data: TrainingData, store: Store, checkpoints: Checkpoints | None = None) -> None:
        """Learns from training cases; a killed fit resumes from the store and the checkpoints.

        The caller clears the checkpoints when the state is saved.
        """
        if checkpoints is not None:
            # All that a training depends on, so that no other continues from its checkpoint.
            facts = [self.name, self.answers_version, self.config.model_dump(mode="json"), data.facts.model_dump()]
            checkpoints = replace(checkpoints, key=value_key([*facts, self.model.identity.run]))
        continues, hits = checkpoints is not None and checkpoints.file.exists(), store.hits
        forget_peak()
        start = now(self.model.device)
        report = self._fit(data.cases, FitContext(store, checkpoints))
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
        if (description.method, description.version) != (self.name, self.answers_version):
            raise state.StateError(
                f"{folder}: fitted by version {description.version} of {description.method!r}, and this is version "
                f"{self.answers_version} of {self.name!r}. Name another folder, or fit the method again."
            )
        fitted = ModelIdentity(source=description.model, weights=description.weights, parts=description.parts)
        state.check_model(folder, fitted, self.model.identity)
        try:
            self.config = self.read_config(description.config)
            self.reset()
            self._restore(tensors, description.facts)
        except (SettingsError, RuntimeError, KeyError, TypeError, ValueError) as error:
            raise state.StateError(
                f"{folder}: the state doesn't fit its own options, or the models that they name ({error}). Put the "
                "right ones there, or fit the method again."
            ) from error
        expected, actual = (one or ModelIdentity() for one in (description.replacement, self._replacement()))
        state.check_model(folder, expected, actual, "replacement model")
        self.data, self.report, self._description = description.data, dict(description.report), description
        return description

    @property
    def fingerprint(self) -> str:
        """Hash of all of the method that can change an answer: its name, its options and what it learned."""
        if self.data is not None:
            return self._describe().fingerprint
        return value_key([self.name, self.config.model_dump(mode="json")])[:32]

    @property
    def identity(self) -> list[Any]:
        """The method with its options and what it learned: over one model, those of one identity answer alike."""
        return [self.name, self.answers_version, self.fingerprint]

    def parameter_count(self) -> int:
        """Parameters that the method loads besides the model's."""
        return 0

    def plan(self, data: state.DataFacts) -> state.Description:
        """Describes the state that a fit on some data has, without its results."""
        identity = self.model.identity
        return state.Description(
            method=self.name,
            version=self.answers_version,
            config=self.config.model_dump(mode="json"),
            model=identity.source,
            weights=identity.weights,
            parts=identity.parts,
            data=data,
        )

    def _describe(self) -> state.Description:
        """Returns the description of the state, whose tensors are hashed once."""
        if self.data is None:
            raise CultureTasksError(f"insertion: {self.name} was not fitted, so there is nothing to save. Call fit().")
        if self._description is None:
            results: dict[str, Any] = {
                "replacement": self._replacement(),
                "facts": self._facts(),
                "report": dict(self.report),
                "tensors": state.digest(self._tensors()),
            }
            self._description = self.plan(self.data).model_copy(update=results)
        return self._description

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        """Learns, and returns measurements."""
        raise NotImplementedError

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Returns the tensors of the fitted state."""
        return {}

    def _facts(self) -> dict[str, Any]:
        """Returns the rest of the fitted state, as JSON."""
        return {}

    def _restore(self, tensors: Tensors, facts: Mapping[str, Any]) -> None:
        """Restores the results of :meth:`_tensors` and :meth:`_facts`; an error says that they don't fit."""
        raise NotImplementedError

    def _replacement(self) -> ModelIdentity | None:
        """Returns the identity of a second model that the method loaded, as it was before anything was trained."""
        return None
