"""What the evaluated model is asked (CrossCult-KIBench, Figure 9)."""

from __future__ import annotations

from culture_tasks.prompt_files import load


def system_prompt(language: str) -> str:
    """Returns the system prompt of a language: ``en``, ``zh`` or ``ar``."""
    return load(__package__, f"system_{language}.v1").text
