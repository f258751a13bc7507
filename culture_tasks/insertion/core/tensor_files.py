"""Tensors in safetensors files: written completely or not at all, and hashed one by one.

Nothing here holds all tensors as bytes, so a state of several GB needs no memory besides its tensors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from culture_tasks.errors import CultureTasksError
from culture_tasks.plain_files import replaced


def digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Returns the SHA-256 of names, types, shapes and values, tensor by tensor, whatever their order."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        sha.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        sha.update(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
    return sha.hexdigest()


def write(path: Path, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, str] | None = None) -> None:
    """Writes a file, or leaves the old one as it was."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as partial:
            ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(ready, partial, metadata=dict(facts or {}))
    except (OSError, SafetensorError) as error:
        raise CultureTasksError(
            f"insertion: {path} can't be written ({error}). Free the disk, and start the same command again."
        ) from error


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Returns the tensors, on the CPU, and the texts of a file."""
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
