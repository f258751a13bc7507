"""The ``--model_args`` of ``knowledge_insertion``, read and checked before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from culture_tasks.errors import SettingsError, nearest
from culture_tasks.insertion.core.adapter import ModelOptions
from culture_tasks.insertion.core.method_registry import method_class, method_names

NAME = "knowledge_insertion"
"""The name of the model for ``--model``."""

_FIRST_BATCH = 32


class InsertionArguments(ModelOptions, extra="allow", coerce_numbers_to_str=True):
    """Arguments of the model; others are options of a method without a state.

    docs/insertion.md describes them. ``max_batch_size`` is not used; lmms-eval passes it to every model.
    """

    pretrained: str = ""
    method: str = "base"
    state: str | None = None
    answers: str | None = None
    paper_latency: bool = False
    batch_size: str = "1"
    max_batch_size: Any = None

    @classmethod
    def read(cls, model_args: Mapping[str, Any]) -> InsertionArguments:
        """Reads arguments, and refuses the first one that can't be used."""
        try:
            arguments = cls.model_validate(
                {
                    name: str(value) if isinstance(value, os.PathLike) else value
                    for name, value in model_args.items()
                    if value is not None
                }
            )
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise SettingsError(
                f"{NAME}: model argument {problem['loc'][0]}={problem['input']!r}: {problem['msg']}."
            ) from None
        advice = arguments._problem()
        if advice is not None:
            raise SettingsError(f"{NAME}: {advice}")
        return arguments

    def _problem(self) -> str | None:
        method = method_class(self.method)
        unknown = set(self.model_extra or {}).difference(self._method_fields)
        if unknown:
            name, names = min(unknown), [*type(self).model_fields, *self._method_fields]
            advice = f" Options of {self.method} are chosen when it is fitted." if method.needs_state else ""
            return f"unknown model argument {name!r}.{nearest(name, names)} Expected one of {', '.join(names)}.{advice}"
        if not self.pretrained:
            return "no model. Add pretrained=… to --model_args: a Hub name or a folder."
        if self.batch_size != "auto" and (not self.batch_size.isdigit() or int(self.batch_size) < 1):
            return f"batch_size={self.batch_size}. Expected a whole number of at least 1, or auto."
        if method.needs_state and self.state is None:
            fit = f"culture-tasks insertion fit --method {self.method} …"
            return f"method={self.method} needs state=DIR. Make one: {fit}"
        if self.state is not None and not method.needs_state:
            fitted = ", ".join(name for name in method_names() if method_class(name).needs_state)
            return f"method={self.method} takes no state. Leave it out, or choose one of {fitted}."
        if self.paper_latency and self.requests_per_batch != 1:
            return "paper_latency=true answers one request at a time, as the paper did. Use batch_size=1 with it."
        return None

    @property
    def _method_fields(self) -> tuple[str, ...]:
        method = method_class(self.method)
        return () if method.needs_state else tuple(method.config_class.model_fields)

    @property
    def method_options(self) -> dict[str, Any]:
        """Options of a method that needs no state."""
        return {name: value for name, value in (self.model_extra or {}).items() if name in self._method_fields}

    @property
    def requests_per_batch(self) -> int:
        """Requests that are answered together."""
        return _FIRST_BATCH if self.batch_size == "auto" else int(self.batch_size)

    @property
    def state_folder(self) -> Path | None:
        """The folder of the state."""
        return None if self.state is None else Path(self.state).expanduser()

    @property
    def answers_file(self) -> Path | None:
        """The file that keeps answers, or None where none are kept."""
        if self.answers == "off":
            return None
        default = platformdirs.user_cache_path("culture-tasks") / "answers.sqlite3"
        return default if self.answers is None else Path(self.answers)
