"""Where images stand in lm-eval's prompts.

``hf-multimodal`` and ``vllm-vlm`` put an image in the place of each ``<image>``. The same text in the data is taken
apart, so that data can't add images. API models put all images before the text and would pass the mark on as text.
"""

from __future__ import annotations

PLACEHOLDER = "<image>"


def taken_apart(text: str) -> str:
    """Returns a text of the data in which nothing passes for an image's place."""
    return text.replace(PLACEHOLDER, "< image >")


def after_image(text: str) -> str:
    """Returns an image's place and the text that follows it."""
    return f"{PLACEHOLDER}\n{text}"


def images_first(prompt: str) -> str:
    """Returns a prompt for models that put all images before it: several are numbered, one needs no mark."""
    before, *parts = prompt.split(PLACEHOLDER)
    if len(parts) < 2:
        return before + "".join(parts).removeprefix("\n")
    return before + "".join(f"Image {number}:{part}" for number, part in enumerate(parts, start=1))
