"""A prompt as the harnesses' models take it: as messages, or as one text with the places of its images.

lm-eval's ``hf-multimodal`` and ``vllm-vlm`` put an image in the place of each ``<image>`` of a text. The same text in
the data is taken apart, so that data can't add images. lm-eval's API models and lmms-eval's simple ones put all images
before the text and would pass the mark on as text: they get a prompt without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

from culture_tasks.benchmarks.interface import Picture, Prompt

if TYPE_CHECKING:
    from PIL.Image import Image

Message = dict[str, Any]

PLACEHOLDER = "<image>"


def render_prompt(prompt: Prompt) -> str:
    """Returns a prompt as one text, with the places of its images.

    A text has no other place for a system message than before the first text of the prompt.
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


def images_first(text: str) -> str:
    """Returns a rendered prompt for models that put all images before it: several are numbered, one needs no mark."""
    before, *parts = text.split(PLACEHOLDER)
    if len(parts) < 2:
        return before + "".join(parts).removeprefix("\n")
    return before + "".join(f"Image {number}:{part}" for number, part in enumerate(parts, start=1))


def conversation(prompt: Prompt, images: Iterable[Image]) -> list[Message]:
    """Returns a prompt with its images, in order, as messages."""
    pictures = iter(images)
    content = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "url": next(pictures)}
        for part in prompt.parts
    ]
    user = {"role": "user", "content": content}
    if not prompt.system:
        return [user]
    return Conversation([{"role": "system", "content": [{"type": "text", "text": prompt.system}]}, user])


class Conversation(list[Message]):
    """Messages whose system message stays the only one: lmms-eval's Qwen backends insert their own before it."""

    def insert(self, index: SupportsIndex, message: Message) -> None:
        """Inserts a message, unless it would be a second system message."""
        if message.get("role") != "system" or all(earlier["role"] != "system" for earlier in self):
            super().insert(index, message)
