"""What the evaluated model is asked (CEDAR, Figures 9 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culture_tasks.benchmarks.interface import Picture, Prompt
from culture_tasks.prompt_files import PromptFile, load

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.documents import CedarDoc
    from culture_tasks.benchmarks.cedar.labels import Language, Modality

VERSION = "v1"


def prompt_file(prompt_language: Language, modality: Modality) -> PromptFile:
    """Returns the prompt file of a language and modality, with its text and SHA-256."""
    return load(__package__, f"{modality}_{prompt_language}.{VERSION}")


def render(doc: CedarDoc) -> Prompt:
    """Returns the prompt for an item: one user message, after the image where there is one.

    The instruction and the options may be in another language than the data (section 4.4). An empty narrative leaves
    its line empty, as filling in the paper's template does. Braces in the data stay as they are.
    """
    file = prompt_file(doc["prompt_language"], doc["modality"])  # type: ignore[arg-type]
    text = file.fill({"narrative": doc["narrative"], "question": doc["question"]})
    return Prompt((Picture(), text) if doc["modality"] == "multimodal" else (text,))
