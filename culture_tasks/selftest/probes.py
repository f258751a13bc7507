"""Whether images reach a model.

Where the pixels or the tokens of a request can be seen, a finding is about them. Elsewhere the reply is all there is: a
model that is small may fail a question that has arrived whole, so that a wrong reply is a note.
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
_SMALL = "A model this small may fail; one that should know better isn't given the whole request."


def _squares(*names: str) -> list[Image]:
    from PIL import Image

    return [Image.new("RGB", (_SIDE, _SIDE), _COLOURS[name]) for name in names]


def images(model: HarnessModel) -> Finding:
    """Has the model name the colours of squares, and compares what reaches it with and without them."""
    leave_out = "Leave image tasks out, or take a type that is shown images: hf-multimodal, vllm-vlm, or lmms-eval's."
    if not model.takes_images:
        return Finding("note", "the model type takes text only", leave_out)
    question = "What colour is this square: red, green or blue? Answer with one word."
    text_only = model.ask(Prompt((question,)))
    try:
        arrivals = {name: model.ask(Prompt((Picture(), question)), _squares(name)) for name in _COLOURS}
    except Exception as error:
        if not model.is_remote:
            raise
        refused = f"the endpoint takes text only: it refuses a question with an image ({type(error).__name__})"
        return Finding("note", refused, leave_out)
    try:
        pair = model.ask(Prompt((Picture(), Picture(), question)), _squares("red", "blue"))
    except Exception as error:
        if not model.is_remote:
            raise
        refused = f"the endpoint refuses a question with two of them ({type(error).__name__})"
        return Finding("fix", refused, "Raise its limit of images, as by vLLM's --limit-mm-per-prompt.")
    red = arrivals["red"]
    replies = {name: arrival.reply for name, arrival in arrivals.items()}
    facts = {"replies": replies, "pixels": [red.pixels, pair.pixels]}
    if red.pixels is not None:
        if not red.pixels:
            return Finding("fix", "no pixel values reach the model", leave_out, facts)
        if pair.pixels != 2 * red.pixels:
            summary = f"an image gives {red.pixels:,} pixel values, two give {pair.pixels:,}"
            return Finding("fix", summary, "Only some arrive: look for the limit of images of the backend.", facts)
        return Finding("ok", f"one and two arrive, with {red.pixels:,} pixel values each", facts=facts)
    if red.prompt_tokens and text_only.prompt_tokens and red.prompt_tokens <= text_only.prompt_tokens:
        return Finding("fix", "an image adds no token to the prompt: it is dropped", leave_out, facts)
    if not model.is_remote and (text_only.prompt_tokens or 0) < (red.prompt_tokens or 0) < (pair.prompt_tokens or 0):
        return Finding("ok", "one and two arrive: each adds tokens to the prompt", facts=facts)
    wrong = [name for name, reply in replies.items() if name not in reply.lower()]
    if not wrong:
        return Finding("ok", f"the colours of {len(replies)} squares are named", facts=facts)
    right, name = len(replies) - len(wrong), wrong[0]
    summary = f"{right} of {len(replies)} colours are named; expected {name}, found {_short(replies[name])}"
    return Finding("note", summary, _SMALL, facts)


def _short(text: str) -> str:
    """Returns a text in quotation marks, its middle left out where it is long."""
    return repr(text if len(text) <= 120 else f"{text[:60]} … {text[-60:]}")
