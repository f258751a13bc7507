"""CEDAR's hooks for lm-eval.

``dataset_…`` is any of the names of :data:`culture_tasks.harness.loading.LOADERS` after ``cedar_``: with every pair of
prompt and data language there are too many to write out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from culture_tasks.benchmarks.cedar.documents import CedarDoc
from culture_tasks.benchmarks.cedar.prompts import render
from culture_tasks.harness import cedar
from culture_tasks.harness.lm_eval.datasets import CustomDataset
from culture_tasks.harness.lm_eval.placeholders import after_image, taken_apart

pooled_metrics = cedar.pooled_metrics()
language_metrics = cedar.language_metrics()

process_pooled = partial(cedar.results, pooled=True)
process_language = partial(cedar.results, pooled=False)


def __getattr__(name: str) -> CustomDataset:
    kind, _, dataset = name.partition("_")
    if kind != "dataset" or not dataset:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return CustomDataset(f"cedar_{dataset}")


def text(doc: CedarDoc) -> str:
    """Returns the prompt of Figure 10, or of Figure 9 with the image's place before it."""
    prompt = render(doc["prompt_language"], doc["modality"], doc["narrative"], doc["question"])  # type: ignore[arg-type]
    return after_image(taken_apart(prompt)) if doc["modality"] == "multimodal" else taken_apart(prompt)


def image(doc: dict[str, Any]) -> Sequence[Any]:
    """Returns the scene."""
    return [doc["image"].convert("RGB")]


def target(doc: CedarDoc) -> str:
    """Returns the English gold label."""
    return doc["gold"]
