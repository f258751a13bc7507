"""CEDAR's hooks for lmms-eval, for its chat and its simple model types.

``docs_…`` is any of the names of :data:`culture_tasks.harness.loading.LOADERS` after ``cedar_``: with every pair of
prompt and data language there are too many to write out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from culture_tasks.benchmarks.cedar.documents import CedarDoc
from culture_tasks.benchmarks.cedar.prompts import render
from culture_tasks.harness import cedar
from culture_tasks.harness.lmms_eval.documents import documents
from culture_tasks.harness.lmms_eval.images import only_of_seen, watched
from culture_tasks.harness.lmms_eval.messages import image_part, text_part, user_message

pooled_metrics = cedar.pooled_metrics()
language_metrics = cedar.language_metrics()

process_pooled = only_of_seen(partial(cedar.results, pooled=True))
process_language = only_of_seen(partial(cedar.results, pooled=False))


def __getattr__(name: str) -> Callable[..., Any]:
    kind, _, dataset = name.partition("_")
    if kind != "docs" or not dataset:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return documents(f"cedar_{dataset}")


def text(doc: CedarDoc) -> str:
    """Returns the prompt of Figure 9 or 10."""
    return render(doc["prompt_language"], doc["modality"], doc["narrative"], doc["question"])  # type: ignore[arg-type]


def visuals(doc: Any) -> list[Any]:
    """Returns the scene; none in the text-only subset."""
    return watched(doc, [doc["image"].convert("RGB")] if doc["modality"] == "multimodal" else [])


def messages(doc: Any) -> list[dict[str, Any]]:
    """Returns the scene, where there is one, and the prompt."""
    return user_message([*(image_part(scene) for scene in visuals(doc)), text_part(text(doc))])


def target(doc: CedarDoc) -> str:
    """Returns the English gold label."""
    return doc["gold"]
