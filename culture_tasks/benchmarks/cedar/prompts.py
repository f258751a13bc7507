"""What the evaluated model is asked (CEDAR, Figures 9 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culture_tasks.benchmarks.interface import Picture, Prompt
from culture_tasks.prompt_files import PromptFile, load

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.documents import CedarDoc


def prompt_file(prompt_language: str, modality: str) -> PromptFile:
    """Returns the prompt file of a language and modality, with its text and SHA-256."""
    return load(__package__, f"{modality}_{prompt_language}.v1")


def render(doc: CedarDoc) -> Prompt:
    """Returns the prompt for an item: one user message, after the image where there is one.

    An empty narrative leaves its line empty, as filling in the paper's template does.
    """
    file = prompt_file(doc["prompt_language"], doc["modality"])
    text = file.fill({"narrative": doc["narrative"], "question": doc["question"]})
    return Prompt((Picture(), text) if doc["modality"] == "multimodal" else (text,))
