"""What the evaluated model is asked (CulturalVQA, section 5, Appendices H and I).

The image's place in a prompt is the harness's matter: it stands before the text of a question.
"""

from __future__ import annotations

from typing import NamedTuple

from culture_tasks.benchmarks.culturalvqa.documents import CulturalVqaDoc, Variant
from culture_tasks.prompt_files import load


class Example(NamedTuple):
    """One answered question of the few-shot prompt."""

    question: str
    answer: str


def render(variant: Variant, doc: CulturalVqaDoc) -> str:
    """Returns the text of a prompt without examples."""
    values = {"question": doc["question"]}
    if variant == "country":
        values["country"] = doc["country_name"]
    elif variant == "lens":
        values["entities"] = doc["entities"]
    return load(__package__, f"{variant}.v1").fill(values)


def instruction() -> str:
    """Returns the text before the examples of the few-shot prompt (Appendix I)."""
    return load(__package__, "fewshot.v1").text


def example_text(example: Example) -> str:
    """Returns what follows the image of an example: question and answer, each on a line (Appendix I)."""
    return f"{example.question}\n{example.answer}"
