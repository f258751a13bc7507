"""The examples that the few-shot prompt of CulturalVQA shows, looked up in the data that this process has loaded.

A document names its examples by row. Carrying their images in each document would hold every image several times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from culture_tasks.benchmarks.culturalvqa.documents import CulturalVqaDoc
from culture_tasks.benchmarks.culturalvqa.prompts import Example
from culture_tasks.harness.loading import loaded

if TYPE_CHECKING:
    from PIL.Image import Image

_NAME = "culturalvqa_fewshot"


def examples_of(doc: CulturalVqaDoc) -> list[Example]:
    """Returns the texts of a document's examples; of several reference answers, the first."""
    rows = loaded(_NAME).select_columns(["question", "references"]).select(doc["examples"])
    return [Example(row["question"], row["references"][0]) for row in rows]


def example_images(doc: CulturalVqaDoc) -> list[Image]:
    """Returns the images of a document's examples."""
    return [row["image"].convert("RGB") for row in loaded(_NAME).select_columns(["image"]).select(doc["examples"])]
