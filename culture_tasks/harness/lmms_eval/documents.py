"""Data sets for lmms-eval.

lmms-eval can only load by ``datasets.load_dataset``, and repeats whatever fails there five times. Its task files
therefore name a placeholder of one row, and ``process_docs`` puts the real documents in its place; the plug-in has
loaded and checked them by then, outside of the repetition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from culture_tasks.harness.lmms_eval.plugin import one_message
from culture_tasks.harness.loading import loaded

if TYPE_CHECKING:
    import datasets


def documents(name: str) -> Callable[[datasets.Dataset], datasets.Dataset]:
    """Returns the ``process_docs`` hook that gives the documents of a data set."""

    def replace(placeholder: datasets.Dataset) -> datasets.Dataset:  # noqa: ARG001
        with one_message():
            return loaded(name)

    return replace
