"""What the evaluated model is asked (CrossCult-KIBench, Figure 9)."""

from __future__ import annotations

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc
from culture_tasks.benchmarks.interface import Picture, Prompt
from culture_tasks.prompt_files import load


def system_prompt(language: str) -> str:
    """Returns the system prompt of a language: ``en``, ``zh`` or ``ar``."""
    return load(__package__, f"system_{language}.v1").text


def render(doc: CrossCultDoc) -> Prompt:
    """Returns the prompt for a request: image and question, with the system prompt of its language."""
    return Prompt((Picture(), doc["question"]), system=system_prompt(doc["language"]))
