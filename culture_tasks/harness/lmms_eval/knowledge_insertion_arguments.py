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
from culture_tasks.insertion.core.insertion_method import InsertionMethod
from culture_tasks.insertion.core.method_registry import method_class

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
        given = {name: value for name, value in model_args.items() if value is not None}
        texts = {name: str(value) if isinstance(value, os.PathLike) else value for name, value in given.items()}
        try:
            arguments = cls.model_validate(texts)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise SettingsError(
                f"{NAME}: model argument {first['loc'][0]}={first['input']!r}: {first['msg']}."
            ) from None
        method = method_class(arguments.method)
        if problem := arguments._problem(method):
            raise SettingsError(f"{NAME}: {problem}")
        method.read_config(arguments.method_options)
        return arguments

    def _problem(self, method: type[InsertionMethod]) -> str | None:
        options = () if method.needs_state else tuple(method.config_class.model_fields)
        if unknown := set(self.method_options).difference(options):
            name, names = min(unknown), [*type(self).model_fields, *options]
            advice = f" Options of {self.method} are chosen when it is fitted." if method.needs_state else ""
            return f"unknown model argument {name!r}.{nearest(name, names)} Expected one of {', '.join(names)}.{advice}"
        if not self.pretrained:
            return "no model. Add pretrained=… to --model_args: a Hub name or a folder."
        if self.batch_size != "auto" and (not self.batch_size.isdigit() or int(self.batch_size) < 1):
            return f"batch_size={self.batch_size}. Expected a whole number of at least 1, or auto."
        if method.needs_state and self.state is None:
            return f"method={self.method} needs state=DIR. Make one: culture-tasks insertion fit --method {self.method}"
        if self.state is not None and not method.needs_state:
            return f"method={self.method} takes no state. Leave it out, or choose another method."
        if self.paper_latency and self.requests_per_batch != 1:
            return "paper_latency=true answers one request at a time, as the paper did. Use batch_size=1 with it."
        return None

    @property
    def method_options(self) -> dict[str, Any]:
        """Options of a method that needs no state."""
        return dict(self.model_extra or {})

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
        return Path(self.answers or platformdirs.user_cache_path("culture-tasks") / "answers.sqlite3")
