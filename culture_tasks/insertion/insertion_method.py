"""What every insertion method does.

A method is made with a model and its options, then fitted or loaded where it needs it, and from then on it is one
edited model: ``insert`` adds knowledge, ``generate`` answers with all that was inserted, ``reset`` removes it all.
Methods that change weights fit in too: they change ``self.model.model`` in ``insert`` and restore it in ``reset``.
The plain model is asked only while nothing is inserted.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from culture_tasks.errors import CultureTasksError
from culture_tasks.insertion import state, tensor_files
from culture_tasks.insertion.adapter import Answer, MultimodalModel
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.identity import ModelIdentity
from culture_tasks.insertion.queries import Insertion, Query, TrainingCase
from culture_tasks.insertion.value_store import ValueStore

Item = TypeVar("Item")


class MethodConfig(BaseModel):
    """Options of a method; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Progress(Protocol):
    """Shows the progress of a loop."""

    def __call__(self, items: Sequence[Item], description: str) -> Iterable[Item]:
        """Yields the items as they are consumed."""


def progress_bar(items: Sequence[Item], description: str, *, hidden: bool = False) -> Iterable[Item]:
    """Progress that shows a bar on standard error."""
    from tqdm import tqdm

    yield from tqdm(items, desc=description, disable=hidden)


def silent(items: Sequence[Item], description: str) -> Iterable[Item]:  # noqa: ARG001 - shows nothing
    """Progress that shows nothing."""
    return items


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a method is fitted on.

    Attributes:
        cases: The training cases, in a fixed order.
        facts: What a state records about them.
    """

    cases: Sequence[TrainingCase]
    facts: state.DataFacts


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
        answers_version: Raise it whenever a change of the code changes an answer: stored answers of older versions
            are not used then.
    """

    name: ClassVar[str]
    config_class: ClassVar[type[MethodConfig]]
    needs_state: ClassVar[bool]
    inserts: ClassVar[bool] = True
    answers_version: ClassVar[int]

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        self.model = model
        self.config = self.config_class() if config is None else config
        self._data: state.DataFacts | None = None
        self._report: dict[str, Any] = {}
        self._description: state.Description | None = None

    @abstractmethod
    def insert(self, insertion: Insertion) -> None:
        """Adds one insertion sample to those that are there."""

    @abstractmethod
    def generate(self, query: Query, decoding: Decoding) -> Answer:
        """Answers a request with all that was inserted."""

    @abstractmethod
    def reset(self) -> None:
        """Removes all insertions; what was fitted stays."""

    def fit(self, data: TrainingData, kept: ValueStore, progress: Progress = silent) -> None:
        """Learns from training cases.

        Args:
            data: What to learn from.
            kept: Stores what is costly to compute, so that a killed fit can resume.
            progress: Shows the progress.

        Raises:
            CultureTasksError: If the method has nothing to learn.
        """
        if not self.needs_state:
            raise CultureTasksError(f"insertion: {self.name} has nothing to fit. Use it without a state.")
        self._report = self._fit(data.cases, kept, progress)
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
            StateError: If the state is broken, or belongs to another method or model.
        """
        description, tensors = state.read(folder)
        if description.method != self.name:
            raise state.StateError(
                f"{folder}: holds a state of {description.method!r}, not of {self.name!r}. "
                f"Use method={description.method}, or name another folder."
            )
        state.check_model(folder, description, self.model.identity)
        try:
            self.config = self.config_class.model_validate(description.config)
        except ValidationError as error:
            raise state.StateError(
                f"{folder}: its options don't fit this version of {self.name} ({str(error).splitlines()[1]}). "
                "Fit the method again."
            ) from None
        self._restore(tensors, description.facts)
        state.check_replacement(folder, description, self._replacement())
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

    def _fit(self, cases: Sequence[TrainingCase], kept: ValueStore, progress: Progress) -> dict[str, Any]:
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

    def _described(self) -> state.Description:
        """Returns what a state says, hashing what was fitted once."""
        if self._data is None:
            raise CultureTasksError(f"insertion: {self.name} was not fitted, so there is nothing to save. Call fit().")
        if self._description is None:
            identity, replacement = self.model.identity, self._replacement()
            self._description = state.Description(
                format=state.FORMAT,
                method=self.name,
                config=self.config.model_dump(mode="json"),
                model=identity.source,
                weights=identity.weights,
                replacement=None if replacement is None else state.SecondModel.of(replacement),
                data=self._data,
                facts=self._facts(),
                report=self._report,
                tensors=tensor_files.digest(self._tensors()),
            )
        return self._description
