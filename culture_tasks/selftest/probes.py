"""What reaches a model: chat template, system message, scripts, length, stop strings, images, and real questions.

Where the model's tokens can be seen, a finding is about them. Elsewhere the reply is all there is: a model that is
small may fail a question that has arrived whole, so that a wrong reply is a note.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.interface import Benchmark, Picture, Prompt
from culture_tasks.benchmarks.registry import benchmarks, in_harness, reading_data, tasks_below
from culture_tasks.data.sources import availability
from culture_tasks.harness.hooks import images_of
from culture_tasks.harness.loading import task_dataset
from culture_tasks.selftest.findings import Finding
from culture_tasks.selftest.models import Arrival, HarnessModel
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from PIL.Image import Image

Look = tuple[str, Callable[[], Finding]]

SCRIPTS: Mapping[str, str] = {
    "Arabic": "القهوة مع التمر",
    "Chinese": "春节吃饺子",
    "Devanagari": "दीवाली की मिठाई",
    "Ethiopic": "የቡና ሥነ ሥርዓት",
    "Japanese": "お正月のおせち料理",
    "Latin": "Crème brûlée à l'œuf",
}
_QUESTION = "Which drink is made from leaves, tea or coffee? Answer with one word."
_COLOURS: Mapping[str, tuple[int, int, int]] = {"red": (220, 0, 0), "green": (0, 160, 0), "blue": (0, 0, 220)}
_SIDE = 112  # pixels
_FILLER = "The market opens early and closes late. "
_TIMES = 150  # about a thousand words
_LIMIT = 8  # tokens
_DOCUMENTS = 2  # of each task
_MARKS = ("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<end_of_turn>", "[/INST]")
_SMALL = "A model this small may fail; one that should know better isn't given the whole request."


def looks_at(model: HarnessModel, settings: Settings) -> Iterator[Look]:
    """Yields what to look at, in a word or two, with the look."""
    for subject, look in (
        ("chat template", _template),
        ("system message", _system),
        ("scripts", _scripts),
        ("length", _length),
        ("stop strings", _stop_strings),
        ("images", _images),
    ):
        yield subject, partial(look, model)
    for benchmark in benchmarks().values():
        yield benchmark.title, partial(_documents, model, benchmark, settings)


def _text(text: str, system: str = "") -> Prompt:
    return Prompt((text,), system=system)


def _template(model: HarnessModel) -> Finding:
    arrival = model.ask(_text(_QUESTION))
    facts = {"reply": arrival.reply, "prompt": arrival.prompt}
    if marks := [mark for mark in _MARKS if mark in arrival.reply]:
        remedy = "The template isn't the model's, or the end of its turn is unknown: compare its tokenizer."
        return Finding("fix", f"the reply holds {', '.join(marks)}, marks of a chat template", remedy, facts)
    if arrival.prompt is None:
        state, remedy = ("ok", "") if arrival.reply.strip() else ("fix", "Look at the server's log.")
        summary = f"applied by the server; asked for tea or coffee, it replied {_short(arrival.reply)}"
        return Finding(state, summary, remedy, facts)  # type: ignore[arg-type]
    _, question, after = arrival.prompt.partition(_QUESTION)
    if not question or _QUESTION in after:
        times = "twice" if question else "not"
        remedy = "Correct the template (tokenizer_config.json or chat_template.jinja of the model)."
        return Finding("fix", f"the question is {times} in the prompt: {_short(arrival.prompt)}", remedy, facts)
    if not after.strip() and model.has_template:
        remedy = "It lacks its part for add_generation_prompt: the model goes on with the question."
        return Finding("fix", "nothing separates the reply from the question", remedy, facts)
    if not after.strip():
        remedy = "For a base model take tasks by likelihood; for another, find the template that it was trained with."
        return Finding("note", "none: the model is given the bare question", remedy, facts)
    way = " Add --apply_chat_template to every run of lm-eval." if model.harness == "lm_eval" else ""
    return Finding("ok", f"there, and the question is whole in it.{way}", facts=facts)


def _system(model: HarnessModel) -> Finding:
    word = "Papaya"
    arrival = model.ask(_text("Which word?", system=f"Reply with the word {word}, whatever the question is."))
    facts = {"reply": arrival.reply, "prompt": arrival.prompt}
    where = "before the question, as lm-eval has it" if model.harness == "lm_eval" else "as the backend sends it"
    if arrival.prompt is not None:
        if word in arrival.prompt:
            return Finding("ok", f"arrives, {where}", facts=facts)
        remedy = "The chat template has no system role. CEDAR and others rely on it: add it, or name another template."
        return Finding("fix", f"lost: it isn't in the prompt {_short(arrival.prompt)}", remedy, facts)
    if word.lower() in arrival.reply.lower():
        return Finding("ok", f"followed, {where}", facts=facts)
    return Finding("note", f"expected {word!r}, found {_short(arrival.reply)}", _SMALL, facts)


def _scripts(model: HarnessModel) -> Finding:
    wrong: dict[str, Arrival] = {}
    for name, text in SCRIPTS.items():
        arrival = model.ask(_text(f"Repeat exactly, without another word: {text}"))
        if text not in (arrival.reply if arrival.prompt is None else arrival.prompt):
            wrong[name] = arrival
    facts = {"wrong": {name: arrival.reply for name, arrival in wrong.items()}}
    tally = f"{len(SCRIPTS) - len(wrong)} of {len(SCRIPTS)} scripts"
    if not wrong:
        return Finding("ok", f"{tally} arrive byte for byte", facts=facts)
    name, arrival = next(iter(wrong.items()))
    summary = f"{tally} arrive; {', '.join(wrong)} not: expected {SCRIPTS[name]}, found "
    if arrival.prompt is not None:
        remedy = "The tokenizer can't spell it: leave tasks in these languages out, or correct the tokenizer."
        return Finding("fix", f"{summary}{_short(arrival.prompt)}", remedy, facts)
    return Finding("note", f"{summary}{_short(arrival.reply)}", _SMALL, facts)


def _length(model: HarnessModel) -> Finding:
    first, last = "Zanzibar", "Kathmandu"
    story = f"The story begins in {first}. {_FILLER * _TIMES}It ends in {last}. In which city does it begin?"
    arrival = model.ask(_text(story), new_tokens=_LIMIT)
    prompt, tokens = arrival.prompt, arrival.prompt_tokens
    facts = {"reply": arrival.reply, "prompt_tokens": tokens, "new_tokens": arrival.new_tokens}
    cut = "It was cut: raise max_length (lm-eval's hf), max_model_len (vLLM) or the server's context."
    if prompt is not None and not (first in prompt and last in prompt):
        summary = f"{tokens} tokens arrived of a story of {len(story.split()):,} words, without its "
        return Finding("fix", f"{summary}{'end' if first in prompt else 'beginning'}", cut, facts)
    if (arrival.new_tokens or 0) > _LIMIT or (arrival.new_tokens is None and len(arrival.reply) > 20 * _LIMIT):
        remedy = "The limit of new tokens is lost on the way: long replies cost time, and score otherwise."
        return Finding("fix", f"asked for {_LIMIT} new tokens, found {_short(arrival.reply)}", remedy, facts)
    if prompt is None and (tokens or 0) < len(story.split()) and first not in arrival.reply:
        return Finding("note", f"a story began in {first}, found {_short(arrival.reply)}", f"{cut} {_SMALL}", facts)
    new = "" if arrival.new_tokens is None else f", {arrival.new_tokens} new tokens of at most {_LIMIT}"
    return Finding("ok", f"a story of {len(story.split()):,} words arrives whole{new}", facts=facts)


def _stop_strings(model: HarnessModel) -> Finding:
    """Has the model stop at a piece of its own reply, so that what it knows doesn't matter."""
    question = _text("Count from one to twenty in words.")
    full_reply = model.ask(question, new_tokens=48).reply
    ours = "Our tasks set none; your variants with `until` need it."
    stop = full_reply[len(full_reply) // 2 :][:4].strip()
    if not stop or len(full_reply) < 8:
        return Finding("note", f"not tried: the reply {_short(full_reply)} is too short", ours)
    reply = model.ask(question, new_tokens=48, stop=[stop]).reply
    facts = {"stop": stop, "without": full_reply, "with": reply}
    if stop in reply:
        return Finding("note", f"not followed: the reply goes on after {stop!r}", ours, facts)
    return Finding("ok", f"the reply ends before {stop!r}", facts=facts)


def _squares(*names: str) -> list[Image]:
    from PIL import Image

    return [Image.new("RGB", (_SIDE, _SIDE), _COLOURS[name]) for name in names]


def _images(model: HarnessModel) -> Finding:
    leave_out = "Leave image tasks out, or take a type that is shown images: hf-multimodal, vllm-vlm, or lmms-eval's."
    if not model.takes_images:
        return Finding("note", "the model type takes text only", leave_out)
    question = "What colour is this square: red, green or blue? Answer with one word."
    try:
        arrivals = {name: model.ask(Prompt((Picture(), question)), _squares(name)) for name in _COLOURS}
        pair = model.ask(Prompt((Picture(), Picture(), question)), _squares("red", "blue"))
        text_only = model.ask(_text(question))
    except Exception as error:
        if not model.is_remote:
            raise
        return Finding("fix", f"the endpoint refuses them ({type(error).__name__})", leave_out)
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


def _documents(model: HarnessModel, benchmark: Benchmark, settings: Settings) -> Finding:
    """Asks the first task with images and the first without whose data are at hand, always the same questions."""
    candidates = dict.fromkeys(task for entry in benchmark.entries() for task in tasks_below(entry.name))
    with reading_data(settings):
        tasks = {
            task.shows_images: task
            for task in reversed(candidates)
            if task.choices is None
            and in_harness(task, model.harness)
            and (model.takes_images or not task.shows_images)
            and set(availability(task.data.sources, settings.data_folder).split(" and ")) <= {"local", "downloaded"}
        }
    if not tasks:
        return Finding("ok", "not tried: no data at hand for this model type")
    hashes: dict[str, str] = {}
    for task in tasks.values():
        digest = hashlib.sha256()
        documents = task_dataset(task.name)
        for place in sorted(random.Random(0).sample(range(len(documents)), min(_DOCUMENTS, len(documents)))):  # noqa: S311
            doc = documents[place]
            prompt = task.prompt(doc)
            images = images_of(task, doc, prompt) if task.shows_images else []
            arrival = model.ask(prompt, images, new_tokens=_LIMIT)
            if lost := _lost(prompt, arrival, images):
                return Finding("fix", f"{task.name}: the model isn't given {lost}", facts={"prompt": arrival.prompt})
            digest.update((repr(prompt) if arrival.prompt is None else arrival.prompt).encode("utf-8", "replace"))
        hashes[task.name] = digest.hexdigest()[:12]
    summary = ", ".join(f"{task} (hash of prompts {digest})" for task, digest in hashes.items())
    return Finding("ok", summary, facts={"prompts": hashes})


def _lost(prompt: Prompt, arrival: Arrival, images: Sequence[Image]) -> str:
    """Returns in words what of a prompt hasn't reached the model, as far as that can be seen; empty if nothing."""
    texts = [part.strip() for part in (prompt.system, *prompt.parts) if isinstance(part, str)]
    if arrival.prompt is not None and (lost := [text for text in texts if text not in arrival.prompt]):
        return f"the text {_short(lost[0])}"
    return f"its {len(images)} images" if images and arrival.pixels == 0 else ""


def _short(text: str) -> str:
    """Returns a text in quotation marks, its middle left out where it is long."""
    return repr(text if len(text) <= 120 else f"{text[:60]} … {text[-60:]}")
