"""Where a training keeps how far it got: one file, replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from culture_tasks.errors import CultureTasksError
from culture_tasks.insertion import tensor_files

_FACTS = "checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A training between two steps.

    Attributes:
        done: How many steps were made.
        tensors: What was trained, and the optimizer's state.
        losses: Sums of the parts of the losses in the pass that is under way, and the number of its cases so far.
    """

    done: int
    tensors: Mapping[str, torch.Tensor]
    losses: Mapping[str, float]
    cases: int


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoint file of one training.

    Attributes:
        file: The file; its folder is made if it doesn't exist.
        every: Number of steps between two checkpoints.
        key: Hash of all that the training depends on: method, options, model, data. Another training's file is refused.
    """

    file: Path
    every: int = 100
    key: str = ""

    def read(self) -> Checkpoint | None:
        """Returns the latest checkpoint, or None.

        Raises:
            CultureTasksError: If the file is broken, or another training's.
        """
        if not self.file.exists():
            return None
        advice = f"Delete it to start from the beginning: {self.file}"
        try:
            tensors, texts = tensor_files.read(self.file)
            facts: dict[str, Any] = json.loads(texts[_FACTS])
            found = Checkpoint(int(facts["done"]), tensors, dict(facts["losses"]), int(facts["cases"]))
            key, digest = facts["key"], facts["digest"]
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise CultureTasksError(f"insertion: the checkpoint can't be read ({error}). {advice}") from None
        if key != self.key:
            raise CultureTasksError(
                "insertion: the checkpoint belongs to another fit (other options, model, data or version). "
                f"Name another folder for the state. {advice}"
            )
        if digest != tensor_files.digest(tensors):
            raise CultureTasksError(
                f"insertion: the checkpoint is damaged: its tensors have another digest than was written. {advice}"
            )
        return found

    def write(self, checkpoint: Checkpoint) -> None:
        """Replaces the checkpoint.

        Raises:
            CultureTasksError: If the file can't be written.
        """
        facts = {
            "key": self.key,
            "done": checkpoint.done,
            "losses": dict(checkpoint.losses),
            "cases": checkpoint.cases,
            "digest": tensor_files.digest(checkpoint.tensors),
        }
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            tensor_files.write(self.file, checkpoint.tensors, {_FACTS: json.dumps(facts)})
        except (OSError, SafetensorError) as error:
            raise CultureTasksError(
                f"insertion: the checkpoint {self.file} can't be written ({error}). Free the disk; the same command "
                "continues from the checkpoint before."
            ) from error

    def clear(self) -> None:
        """Deletes the file, and what killed processes left of it."""
        for path in [self.file, *self.file.parent.glob(f"{self.file.name}.*.partial")]:
            path.unlink(missing_ok=True)
