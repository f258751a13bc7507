"""Options of the plain model."""

from __future__ import annotations

from culture_tasks.insertion.core.insertion_method import MethodConfig


class BaseModelConfig(MethodConfig):
    """There are none."""
