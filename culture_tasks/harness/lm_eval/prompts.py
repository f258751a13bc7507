"""A prompt as lm-eval's models take it: one text, with the places of its images.

``hf-multimodal`` and ``vllm-vlm`` put an image in the place of each ``<image>`` of a prompt. The same text in the data
is taken apart, so that data can't add images. API models put all images before the text and would pass the mark on as
text: they get a prompt without it.
"""

from __future__ import annotations

from culture_tasks.benchmarks.interface import Picture, Prompt

PLACEHOLDER = "<image>"


def render_prompt(prompt: Prompt) -> str:
    """Returns a prompt as one text, with the places of its images.

    lm-eval has one system message for all documents of a run, so a prompt's own is put before its first text.
    """
    lines: list[str] = []
    system = [prompt.system] if prompt.system else []
    for part in prompt.parts:
        if isinstance(part, Picture):
            lines.append(PLACEHOLDER)
        else:
            lines += [*system, part.replace(PLACEHOLDER, "< image >")]
            system = []
    return "\n".join(lines)


def images_first(prompt: str) -> str:
    """Returns a rendered prompt for models that put all images before it: several are numbered, one needs no mark."""
    before, *parts = prompt.split(PLACEHOLDER)
    if len(parts) < 2:
        return before + "".join(parts).removeprefix("\n")
    return before + "".join(f"Image {number}:{part}" for number, part in enumerate(parts, start=1))
