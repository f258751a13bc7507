"""The base model f of section 3.1, which ignores insertions."""

from __future__ import annotations

from typing import ClassVar

from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig
from culture_tasks.insertion.core.requests import Insertion


class BaseModelMethod(InsertionMethod):
    """Answers as if nothing had been inserted."""

    name: ClassVar[str] = "base"
    config_class: ClassVar[type[MethodConfig]] = MethodConfig
    needs_state: ClassVar[bool] = False
    answers_version: ClassVar[int] = 1
    inserts: ClassVar[bool] = False

    def insert(self, insertion: Insertion) -> None:
        """Does nothing."""

    def reset(self) -> None:
        """Does nothing."""
