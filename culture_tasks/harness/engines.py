"""Whether the engine of a model type is installed, and gets more than one request at a time."""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec

from culture_tasks.errors import MissingExtraError, SettingsError

_log = logging.getLogger(__name__)

_ENGINES = ("vllm", "sglang")
_EXTRA = "vllm"


def check_engine(model: object, batch_size: object, advice: str) -> None:
    """Makes sure, before anything is loaded, that the engine of a model type is installed.

    A warning says so if the harness will hand it one request at a time, as both do unless told otherwise.

    Args:
        model: Name of the model type; a model that a program has loaded needs no check.
        batch_size: Requests that the harness hands over at once.
        advice: Batch size that the harness takes for an engine.

    Raises:
        MissingExtraError: If vLLM isn't installed, or lacks Ray for images in lm-eval.
        SettingsError: If another engine isn't.
    """
    engine = re.split(r"[-_]", model)[0] if isinstance(model, str) else None
    if engine not in _ENGINES:
        return
    for package in (engine, "ray") if model == "vllm-vlm" else (engine,):
        if find_spec(package) is None:
            if engine == _EXTRA:
                raise MissingExtraError(f"--model {model}", package, _EXTRA)
            raise SettingsError(f"--model {model} needs the package {package!r}, which is not installed.")
    if str(batch_size) == "1":
        _log.warning(
            "--model %s with a batch size of 1 answers one request at a time. Add --batch_size %s.", model, advice
        )
