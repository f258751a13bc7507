"""CulturalVQA's hooks for lm-eval."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from culture_tasks.benchmarks.culturalvqa.documents import CulturalVqaDoc, Variant
from culture_tasks.benchmarks.culturalvqa.prompts import example_text, instruction, render
from culture_tasks.harness import culturalvqa
from culture_tasks.harness.culturalvqa_examples import example_images, examples_of
from culture_tasks.harness.lm_eval.datasets import CustomDataset
from culture_tasks.harness.lm_eval.placeholders import after_image, taken_apart

dataset_vlm = CustomDataset("culturalvqa")
dataset_lave3 = CustomDataset("culturalvqa_lave3")
dataset_fewshot = CustomDataset("culturalvqa_fewshot")
dataset_blind = CustomDataset("culturalvqa_blind")
dataset_country = CustomDataset("culturalvqa_country")
dataset_lens = CustomDataset("culturalvqa_lens")

metric_list = culturalvqa.metrics()
metric_list_lave3 = culturalvqa.metrics("lave3")

process_lave3 = partial(culturalvqa.results, rubric="lave3")


def _text(variant: Variant, doc: CulturalVqaDoc) -> str:
    return taken_apart(render(variant, doc))


text_blind = partial(_text, "blind")
text_country = partial(_text, "country")
text_lens = partial(_text, "lens")


def text_vlm(doc: CulturalVqaDoc) -> str:
    """Returns the image's place and the prompt of Appendix H."""
    return after_image(_text("vlm", doc))


def text_fewshot(doc: CulturalVqaDoc) -> str:
    """Returns the prompt of Appendix I: examples of image, question and answer, then image and question."""
    shown = [*(example_text(example) for example in examples_of(doc)), doc["question"]]
    return "\n".join([instruction(), *(after_image(taken_apart(text)) for text in shown)])


def image(doc: dict[str, Any]) -> list[Any]:
    """Returns the question's image."""
    return [doc["image"].convert("RGB")]


def images_fewshot(doc: Any) -> list[Any]:
    """Returns the examples' images, then the question's."""
    return [*example_images(doc), *image(doc)]


def target(doc: CulturalVqaDoc) -> list[str]:
    """Returns the reference answers."""
    return doc["references"]


def process_results(doc: CulturalVqaDoc, results: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's records."""
    return culturalvqa.results(doc, results)
