"""What every insertion method does.

A method is made with a model and its options, then fitted or loaded where it needs it, and from then on it is one
edited model: ``insert`` adds knowledge, ``ask`` says what a request becomes after that, ``reset`` removes it all.

There are two kinds. Most methods change only what is asked, and of which model: their answers can be generated later,
in any order and by any engine, and a request that they leave alone has the plain model's answer. Methods that change
weights say so by ``edits_weights``: they change ``self.model.model`` in ``insert``, restore it bit for bit in
``reset``, and their requests are answered while the change is there.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion import state, tensor_files
from culture_tasks.insertion.adapter import Answer, MultimodalModel
from culture_tasks.insertion.checkpoints import Checkpoints
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.device_meter import forget_peak, now, peak_gib
from culture_tasks.insertion.identity import ModelIdentity
from culture_tasks.insertion.progress import Progress, silent
from culture_tasks.insertion.queries import Insertion, Query, TrainingCase
from culture_tasks.insertion.value_store import ValueStore


class MethodConfig(BaseModel):
    """Options of a method; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a method is fitted on.

    Attributes:
        cases: The training cases, in a fixed order.
        facts: What a state records about them.
    """

    cases: Sequence[TrainingCase]
    facts: state.DataFacts


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request becomes after insertions.

    Attributes:
        query: What is asked: the request itself, or the request with something before it.
        by: The model that answers, if the method has one of its own; None means the model itself.
        activated: Index of the insertion that is used; None if none is, or if the method uses all.
        similarity: Highest score of the request; None if nothing was compared.
        threshold: What the score was compared with.
    """

    query: Query
    by: MultimodalModel | None = None
    activated: int | None = None
    similarity: float | None = None
    threshold: float | None = None


class InsertionMethod(ABC):
    """One method over one model.

    Args:
        model: The model.
        config: The method's options, of ``config_class``.

    Attributes:
        name: Name of the method, and of its folder.
        config_class: Class of its options.
        needs_state: Whether it must be fitted or loaded before use.
        inserts: Whether insertions can change its answers at all.
        edits_weights: Whether insertions change the weights of the model.
        other_models: Options that name models which it loads beside the model, such as an encoder.
        answers_version: Raise it whenever a change of the code changes an answer: stored answers of older versions
            are not used then, and states that they fitted are refused.
        batch_size: Requests that are computed together, wherever the method computes with a model.
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
        self._data: state.DataFacts | None = None
        self._report: dict[str, Any] = {}
        self._description: state.Description | None = None

    @classmethod
    def read_config(cls, options: Mapping[str, object]) -> MethodConfig:
        """Makes options of the method.

        Raises:
            SettingsError: If an option is unknown, or a value is not allowed.
        """
        known = cls.config_class.model_fields
        try:
            return cls.config_class.model_validate(dict(options))
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            option = ".".join(str(part) for part in problem["loc"])
            hint = nearest(option, known) if option not in known else ""
            raise SettingsError(
                f"insertion: option {option}={problem['input']!r} of {cls.name}: {problem['msg']}.{hint} "
                f"Known are {', '.join(known) or 'none'}."
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
        kept: ValueStore,
        progress: Progress = silent,
    ) -> None:
        """Computes ahead, in batches, what :meth:`insert` and :meth:`ask` will need.

        Without it they compute the same one by one.

        Args:
            requests: What :meth:`ask` will be asked.
            insertions: What will be inserted.
            kept: Stores what is costly to compute, by model and input, so that no run computes it again.
            progress: Shows the progress.
        """

    def ask(self, query: Query) -> Asked:
        """Says what a request becomes after all that was inserted."""
        return Asked(query)

    def generate(self, query: Query, decoding: Decoding) -> Answer:
        """Answers a request with all that was inserted, on its own."""
        asked = self.ask(query)
        answer = (asked.by or self.model).generate(asked.query, decoding)
        return replace(answer, activated=asked.activated, similarity=asked.similarity, threshold=asked.threshold)

    def fit(
        self,
        data: TrainingData,
        kept: ValueStore,
        progress: Progress = silent,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        """Learns from training cases.

        Args:
            data: What to learn from.
            kept: Stores what is costly to compute, so that a killed fit can resume.
            progress: Shows the progress.
            checkpoints: Where a training by gradients keeps how far it got; the caller clears it when the state is
                saved. None keeps nothing.

        Raises:
            CultureTasksError: If the method has nothing to learn.
        """
        if not self.needs_state:
            raise CultureTasksError(f"insertion: {self.name} has nothing to fit. Use it without a state.")
        own = None if checkpoints is None else replace(checkpoints, key=self._key_of_fit(data))
        is_new = not len(kept) and (own is None or not own.file.exists())
        forget_peak()
        start = now(self.model.device)
        report = self._fit(data.cases, kept, progress, own)
        seconds = now(self.model.device) - start
        self._report = {
            **report,
            "cases": len(data.cases),
            # What continues an earlier fit, or finds its features, says nothing of how long a fit takes.
            "seconds": seconds if is_new else None,
            "peak_gib": peak_gib(self.model.device),
        }
        self._data, self._description = data.facts, None

    def save(self, folder: Path) -> state.Description:
        """Writes what was fitted.

        Raises:
            CultureTasksError: If nothing was.
        """
        description = self._described()
        state.write(folder, description, self._tensors())
        return description

    def load(self, folder: Path) -> state.Description:
        """Reads what was fitted, options too.

        Raises:
            StateError: If the state is broken, or belongs to another method, version of it, or model.
        """
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
        self._data, self._report, self._description = description.data, dict(description.report), description
        return description

    @property
    def data(self) -> state.DataFacts | None:
        """What the method was fitted on, or None."""
        return self._data

    @property
    def report(self) -> Mapping[str, Any]:
        """What was measured while fitting."""
        return self._report

    @property
    def fingerprint(self) -> str:
        """Hash of all of the method that can change an answer: its name, its options and what it learned."""
        if self._data is not None:
            return self._described().fingerprint
        canonical = json.dumps([self.name, self.config.model_dump(mode="json")], sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:32]

    def parameter_count(self) -> int:
        """Parameters that the method loads besides the model's."""
        return 0

    def _fit(
        self, cases: Sequence[TrainingCase], kept: ValueStore, progress: Progress, checkpoints: Checkpoints | None
    ) -> dict[str, Any]:
        """Learns, and returns what was measured."""
        raise NotImplementedError(f"{self.name} says that it needs a state, and has no _fit")

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Returns what was fitted, as tensors."""
        return {}

    def _facts(self) -> dict[str, Any]:
        """Returns what was fitted, as JSON."""
        return {}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        """Restores what :meth:`_tensors` and :meth:`_facts` returned.

        Raises:
            StateError: If it doesn't fit.
        """
        raise NotImplementedError(f"{self.name} has a state, and no _restore")

    def _replacement(self) -> ModelIdentity | None:
        """Returns the identity of a second model that the method loaded, as it was before anything was trained."""
        return None

    def _key_of_fit(self, data: TrainingData) -> str:
        """Returns a hash of all that a training depends on, so that no other continues from its checkpoint."""
        facts = [self.name, self.answers_version, self.config.model_dump(mode="json"), data.facts.model_dump()]
        return hashlib.sha256(json.dumps([*facts, self.model.identity.run], sort_keys=True).encode()).hexdigest()

    def _described(self) -> state.Description:
        """Returns what a state says, hashing what was fitted once."""
        if self._data is None:
            raise CultureTasksError(f"insertion: {self.name} was not fitted, so there is nothing to save. Call fit().")
        if self._description is None:
            identity, replacement = self.model.identity, self._replacement()
            self._description = state.Description(
                format=state.FORMAT,
                method=self.name,
                version=self.answers_version,
                config=self.config.model_dump(mode="json"),
                model=identity.source,
                weights=identity.weights,
                parts=dict(identity.parts),
                replacement=None if replacement is None else state.ModelFacts.of(replacement),
                data=self._data,
                facts=self._facts(),
                report=self._report,
                tensors=tensor_files.digest(self._tensors()),
            )
        return self._description
