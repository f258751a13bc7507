"""Chat messages as lmms-eval's chat models take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

Part = dict[str, Any]


def image_part(image: Image) -> Part:
    """Returns the part of a message that holds an image."""
    return {"type": "image", "url": image}


def text_part(text: str) -> Part:
    """Returns the part of a message that holds text."""
    return {"type": "text", "text": text}


def user_message(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Returns a conversation of one message by the user."""
    return [{"role": "user", "content": list(parts)}]


def no_images(doc: Any) -> Sequence[Image]:  # noqa: ARG001 - any document
    """Returns no images: the ``doc_to_visual`` of text-only tasks."""
    return []
