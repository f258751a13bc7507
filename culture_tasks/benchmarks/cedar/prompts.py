"""What the evaluated model is asked (CEDAR, Figures 9 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culture_tasks.prompt_files import Prompt, load

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.labels import Language, Modality

VERSION = "v1"


def prompt_file(prompt_language: Language, modality: Modality) -> Prompt:
    """Returns the prompt file of a language and modality, with its text and SHA-256."""
    return load(__package__, f"{modality}_{prompt_language}.{VERSION}")


def render(prompt_language: Language, modality: Modality, narrative: str, question: str) -> str:
    """Returns the text of the one user message for an item; an image goes before it.

    An empty narrative leaves its line empty, as filling in the paper's template does. Braces in the data stay as
    they are.

    Args:
        prompt_language: Language of the instruction and the options, which may differ from the data's (section 4.4).
        modality: ``text`` for Figure 10, ``multimodal`` for Figure 9.
        narrative: The item's narrative.
        question: The item's question.
    """
    values = {"narrative": narrative, "question": question}
    return prompt_file(prompt_language, modality).fill(values)
