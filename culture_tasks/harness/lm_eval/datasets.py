"""Data sets as lm-eval's ``custom_dataset`` wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from culture_tasks.harness.lm_eval.results import extend_results
from culture_tasks.harness.loading import load_for_evaluation

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True)
class CustomDataset:
    """The hook that loads a data set; the first one that is called also extends lm-eval's results.

    Attributes:
        name: One of :data:`culture_tasks.harness.loading.LOADERS`.
    """

    name: str

    def __call__(self, **_: object) -> dict[str, datasets.Dataset]:
        """Loads the data set; lm-eval passes the task's metadata, which it doesn't need."""
        extend_results()
        return {"test": load_for_evaluation(self.name)}
