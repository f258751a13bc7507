"""CrossCult-KIBench's hooks for lm-eval: the diagnostic, which inserts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc
from culture_tasks.benchmarks.crosscult.prompts import system_prompt
from culture_tasks.harness import crosscult
from culture_tasks.harness.lm_eval.datasets import CustomDataset
from culture_tasks.harness.lm_eval.placeholders import after_image, taken_apart

dataset_diagnostic = CustomDataset("crosscult_diagnostic")

metric_list_diagnostic = crosscult.metrics("diagnostic")


def text(doc: CrossCultDoc) -> str:
    """Returns the image's place, the system prompt of Figure 9 and the question.

    lm-eval has one system message for all documents of a run, so that of a language is put before the question.
    """
    return after_image(f"{system_prompt(doc['language'])}\n{taken_apart(doc['question'])}")


def image(doc: dict[str, Any]) -> list[Any]:
    """Returns the image that the question is about."""
    return [doc["image"].convert("RGB")]


def target(doc: CrossCultDoc) -> str:
    """Returns the reference answer."""
    return doc["reference"]


def process_results(doc: CrossCultDoc, results: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's records."""
    return crosscult.results(doc, results)
