"""Whether images reach a model: by the pixel values that it is given, else by the colours that it names.

A small model may fail a question that has arrived whole, so that a wrong reply is a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.interface import Picture, Prompt
from culture_tasks.selftest.findings import Finding
from culture_tasks.selftest.models import HarnessModel

if TYPE_CHECKING:
    from PIL.Image import Image

_COLOURS: Mapping[str, tuple[int, int, int]] = {"red": (220, 0, 0), "green": (0, 160, 0), "blue": (0, 0, 220)}
_SIDE = 112  # pixels
_QUESTION = "What colour is this square: red, green or blue? Answer with one word."
_LEAVE_OUT = "Leave image tasks out, or take a type that is shown images: hf-multimodal, vllm-vlm, or lmms-eval's."


def _squares(*names: str) -> list[Image]:
    from PIL import Image

    return [Image.new("RGB", (_SIDE, _SIDE), _COLOURS[name]) for name in names]


def images(model: HarnessModel) -> Finding:
    """Has the model name the colours of squares, and compares what reaches it of one image and of two."""
    if not model.takes_images:
        return Finding("note", "the model type takes text only", _LEAVE_OUT)
    model.ask(Prompt((_QUESTION,)))  # which fails where the model can't be reached at all
    try:
        answers = {name: model.ask(Prompt((Picture(), _QUESTION)), _squares(name)) for name in _COLOURS}
        pair = model.ask(Prompt((Picture(), Picture(), _QUESTION)), _squares("red", "blue"))
    except Exception as error:
        if not model.is_remote:
            raise
        refused = f"the endpoint refuses a question with an image, or with two ({type(error).__name__})"
        return Finding("note", refused, "Leave image tasks out, or raise its limit (vLLM: --limit-mm-per-prompt).")
    replies = {name: answer.reply for name, answer in answers.items()}
    one, two = answers["red"].pixels, pair.pixels
    facts = {"replies": replies, "pixels": [one, two]}
    if one == 0:
        return Finding("fix", "no pixel values reach the model", _LEAVE_OUT, facts)
    if one is not None and two != 2 * one:
        summary = f"an image gives {one:,} pixel values, two give {two:,}"
        return Finding("fix", summary, "Only some arrive: look for the limit of images of the backend.", facts)
    if one is not None:
        return Finding("ok", f"one and two arrive, with {one:,} pixel values each", facts=facts)
    wrong = [name for name, reply in replies.items() if name not in reply.lower()]
    if not wrong:
        return Finding("ok", f"the colours of {len(replies)} squares are named", facts=facts)
    if len(set(replies.values())) == 1:
        summary = f"{len(replies)} squares of different colours have one reply, {replies['red']!r:.120}"
        return Finding("fix", summary, f"Images seem to be dropped. {_LEAVE_OUT}", facts)
    summary = f"{len(wrong)} of {len(replies)} colours are wrong; expected {wrong[0]}, found {replies[wrong[0]]!r:.120}"
    return Finding("note", summary, "A small model may fail; one that should know better isn't shown the image.", facts)
