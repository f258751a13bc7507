"""CARE's hooks for lm-eval."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from culture_tasks.benchmarks.care.documents import CareDoc
from culture_tasks.benchmarks.care.prompts import render
from culture_tasks.harness import care
from culture_tasks.harness.lm_eval.datasets import CustomDataset

dataset_ar = CustomDataset("care_ar")
dataset_ja = CustomDataset("care_ja")
dataset_zh = CustomDataset("care_zh")
dataset_en_ar = CustomDataset("care_en_ar")
dataset_en_ja = CustomDataset("care_en_ja")
dataset_en_zh = CustomDataset("care_en_zh")

text_plain = partial(render, "plain")
text_roleplay = partial(render, "roleplay")
text_cot = partial(render, "cot")

metric_list = care.metrics()


def target(doc: CareDoc) -> str:
    """Returns the reference answer."""
    return doc["answer"]


def process_results(doc: CareDoc, results: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's records."""
    return care.results(doc, results)
