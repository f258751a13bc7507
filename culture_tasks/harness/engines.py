"""Whether the engine of a model type is installed, and gets more than one request at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.util import find_spec

from culture_tasks.errors import MissingExtraError, SettingsError

_log = logging.getLogger(__name__)

_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "vllm": ("vllm",),
    "vllm-vlm": ("vllm", "ray"),
    "vllm_generate": ("vllm",),
    "sglang": ("sglang",),
}
"""Packages that the model types of an engine import, in both harnesses."""


def check_engine(model: object, batch_size: object, advice: str) -> None:
    """Makes sure, before anything is loaded, that the engine of a model type is installed, unless it is an object.

    A warning advises a batch size if the harness will hand an engine one request at a time, as both do by default.
    """
    packages = _PACKAGES.get(model, ()) if isinstance(model, str) else ()
    if missing := next((package for package in packages if find_spec(package) is None), None):
        if packages[0] == "vllm":
            raise MissingExtraError(f"--model {model}", missing, "vllm")
        raise SettingsError(f"--model {model} needs the package {missing!r}, which is not installed.")
    if packages and str(batch_size) == "1":
        _log.warning(
            "--model %s with a batch size of 1 answers one request at a time. Add --batch_size %s.", model, advice
        )
