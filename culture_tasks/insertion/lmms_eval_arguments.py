"""Model arguments of ``knowledge_insertion``, checked."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from culture_tasks.errors import SettingsError, nearest
from culture_tasks.insertion.registry import method_class, method_names

NAME = "knowledge_insertion"
"""What ``--model`` calls the model."""

_OFF = "off"


def check_arguments(
    model: type, pretrained: str, method: str, folder: str | None, batch_size: int | str, unknown: Mapping[str, Any]
) -> None:
    """Makes sure that the model arguments can be used, before anything is loaded.

    Raises:
        SettingsError: For the first one that can't.
    """
    if unknown:
        known = [name for name in inspect.signature(model).parameters if name != "unknown"]
        name = sorted(unknown)[0]
        raise SettingsError(
            f"{NAME}: unknown model argument {name!r}.{nearest(name, known)} Known are {', '.join(known)}. "
            "Options of a method are chosen when it is fitted."
        )
    if not pretrained:
        raise SettingsError(f"{NAME}: no model. Add pretrained=… to --model_args: a Hub name or a folder.")
    if str(batch_size) not in ("1", "auto"):
        raise SettingsError(f"{NAME}: batch_size={batch_size}. An edited model answers one request at a time: use 1.")
    needs_state = method_class(method).needs_state
    if needs_state and folder is None:
        raise SettingsError(
            f"{NAME}: method={method} needs state=DIR. Make one: culture-tasks insertion fit --method {method} …"
        )
    if folder is not None and not needs_state:
        fitted = ", ".join(name for name in method_names() if method_class(name).needs_state)
        raise SettingsError(f"{NAME}: method={method} takes no state. Leave it out, or choose one of {fitted}.")


def answers_file(answers: str | None) -> Path | None:
    """Returns the file that keeps answers, or None where none are kept; by default it is in the user's cache folder."""
    if answers == _OFF:
        return None
    return platformdirs.user_cache_path("culture-tasks") / "answers.sqlite3" if answers is None else Path(answers)


def is_true(value: bool | str) -> bool:
    """Reads a yes or no of ``--model_args``, which lmms-eval passes on as text or not."""
    return value if isinstance(value, bool) else str(value).strip().lower() in ("true", "1", "yes", "on")
