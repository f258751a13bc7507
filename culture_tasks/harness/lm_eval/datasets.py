"""Data sets as lm-eval's ``custom_dataset`` wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from culture_tasks.harness.loading import load_for_evaluation

if TYPE_CHECKING:
    import datasets


def custom_dataset(name: str) -> Callable[..., dict[str, datasets.Dataset]]:
    """Returns the hook that loads a data set; lm-eval passes it the task's metadata, which it doesn't need."""

    def load(**_: object) -> dict[str, datasets.Dataset]:
        return {"test": load_for_evaluation(name)}

    return load
