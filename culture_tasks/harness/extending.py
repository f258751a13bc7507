"""Extensions of a harness's functions, which all call the original; and whether the engine of a model is there."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any

from culture_tasks.errors import CultureTasksError, SettingsError


def extend(owner: Any, name: str, extension: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replaces a function of a harness's module or class by an extension of it, once for each extension."""
    original = getattr(owner, name, None)
    if original is None:
        raise CultureTasksError(
            f"culture-tasks: found no {name} in {owner.__name__}, so this version of the harness is not known. "
            "Install the version that the README names."
        )
    extensions: set[str] = getattr(original, "__culture_tasks__", set())
    key = f"{extension.__module__}.{extension.__qualname__}"
    if key not in extensions:
        extended = wraps(original)(extension(original))
        extended.__culture_tasks__ = {*extensions, key}  # type: ignore[attr-defined]
        setattr(owner, name, extended)


_ENGINES = {"vllm": "vllm", "vllm-vlm": "vllm", "vllm_generate": "vllm", "sglang": "sglang"}
"""The packages that both harnesses' models of an engine import."""


def check_engine(model: object) -> None:
    """Refuses a model type whose engine is missing, which lmms-eval calls a "NoneType" that isn't callable."""
    engine = _ENGINES.get(str(model))
    if engine is not None and find_spec(engine) is None:
        raise SettingsError(f"--model {model} needs the package {engine!r}, which is not installed. Install it.")
