"""Options of the plain model."""

from __future__ import annotations

from culture_tasks.insertion.interface import MethodConfig


class BaseModelConfig(MethodConfig):
    """There are none."""
