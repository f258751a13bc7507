"""Ten families with their own processors and tiny weights: what lmms-eval's stock model shows the model, and ours.

Both run in float32, since most stock models load bfloat16 whatever the checkpoint says. Images are of a size that no
family's stock model resizes before the processor does.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from itertools import repeat
from types import ModuleType
from typing import NamedTuple

import pytest
import torch
from PIL import Image
from support.in_process import run_lmms_eval
from support.tiny_families import FAMILIES, family, save_family
from transformers import PreTrainedModel

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.prompts import conversation

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SIDE = 448
SYSTEM, SEVERAL = "crosscult_diagnostic", "culturalvqa_fewshot"
"""A task with a system message, and one that shows four images and has none."""


class Stock(NamedTuple):
    """A model class of lmms-eval, its arguments, and those of ours that ``docs/insertion.md`` names beside it."""

    name: str
    arguments: str = "device=cpu,device_map=cpu"
    ours: str = ""
    alike: tuple[str, ...] = (SYSTEM, SEVERAL)  # the tasks in which both show the model the same


STOCK = {
    "internvl": Stock("internvl_hf", ours="min_patches=1,max_patches=12"),
    "qwen2_5_vl": Stock("qwen2_5_vl", ours="min_pixels=200704,max_pixels=1605632"),
    # These add a system message where the task has none.
    "qwen3_vl": Stock("qwen3_vl", ours="min_pixels=4096,max_pixels=16777216", alike=(SYSTEM,)),
    "qwen3_5": Stock(
        "qwen3_5",
        "device=cpu,device_map=cpu,enable_thinking=false",
        ours="min_pixels=4096,max_pixels=16777216",
        alike=(SYSTEM,),
    ),
    "llava": Stock("llava_hf"),
    "llava_next": Stock("llava_hf"),
    # It shows each of several images as tiles, as the processor does an image alone.
    "llava_onevision": Stock("llava_hf", alike=(SYSTEM,)),
    # Of these lmms-eval has a simple model alone, which writes the prompt itself.
    "gemma3": Stock("gemma3", alike=()),
    "mistral3": Stock("mistral3_vl", alike=()),
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, fixture_data):
    """The bundled data with images of one size."""
    folder = tmp_path_factory.mktemp("pictures")
    for benchmark in ("culturalvqa", "crosscult"):
        shutil.copytree(fixture_data / benchmark, folder / benchmark)
    for path in folder.rglob("*.png"):
        Image.open(path).convert("RGB").resize((SIDE, SIDE)).save(path)
    return folder


@pytest.fixture(autouse=True)
def environment(monkeypatch, pictures):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(pictures))
    decord = ModuleType("decord")  # which lmms-eval imports for videos
    decord.VideoReader = decord.cpu = None
    decord.__spec__ = ModuleSpec("decord", None)
    monkeypatch.setitem(sys.modules, "decord", decord)
    from_pretrained = PreTrainedModel.from_pretrained.__func__

    def in_float32(cls, *positional, torch_dtype=None, dtype=None, **named):
        return from_pretrained(cls, *positional, dtype=torch.float32, **named)

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", classmethod(in_float32))


@contextmanager
def recorded(name):
    """Notes the token ids, the images and, unless they are of a batch, the inputs of each text of a processor.

    Each image has one placeholder in its prompt, and a prompt begins once.
    """
    processor, calls = family(name).processor, {}
    original = type(processor).__call__
    placeholder, begin = getattr(processor, "boi_token", processor.image_token), processor.tokenizer.bos_token_id

    def note(self, images=None, text=None, **options):
        inputs = original(self, images=images, text=text, **options)
        prompts = [text] if isinstance(text, str) else text
        nested = bool(images) and isinstance(images[0], list)
        for number, (prompt, ids) in enumerate(zip(prompts, inputs["input_ids"].tolist(), strict=True)):
            shown = len(images[number] if nested else images or [])
            assert prompt.count(placeholder) == shown
            assert begin is None or ids.count(begin) == 1
            calls[prompt] = (ids, shown, dict(inputs) if len(prompts) == 1 else {})
        return inputs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(processor), "__call__", note)
        yield calls
    assert sorted(shown for _, shown, _ in calls.values()) == [1, 1, 4, 4]


def run(model, *arguments):
    results = run_lmms_eval(
        model, [SYSTEM, SEVERAL], model_args=",".join(filter(None, arguments)), bootstrap_iters=0, limit=2
    )
    return {task: [sample["resps"][0][0].strip() for sample in samples] for task, samples in results["samples"].items()}


def rendered(name, task, doc):
    """Returns a document's prompt in the family's chat template."""
    messages = conversation(task_named(task).prompt(doc), repeat(None))
    options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
    return family(name).processor.apply_chat_template(list(messages), **options)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_model_is_shown_each_prompt_and_image_once(name, tmp_path):
    folder, stock = save_family(name, tmp_path), STOCK.get(name)
    with recorded(name) as ours:
        answers = run(
            "knowledge_insertion", f"pretrained={folder}", "device=cpu", "answers=off", stock.ours if stock else ""
        )
    docs = [(task, load_for_evaluation(task)[number]) for task in (SYSTEM, SEVERAL) for number in range(2)]
    prompts = {rendered(name, task, doc): (task, doc) for task, doc in docs}
    assert ours.keys() == prompts.keys()
    if stock is None:
        return
    with recorded(name) as shown:
        theirs = run(stock.name, f"pretrained={folder}", stock.arguments)
    for text, (task, doc) in prompts.items():
        if task in stock.alike:
            (ids, _, inputs), (their_ids, _, their_inputs) = ours[text], shown[text]
            assert their_ids == ids
            assert their_inputs.keys() == inputs.keys() > set()
            for key, value in inputs.items():
                assert torch.equal(torch.as_tensor(their_inputs[key]), torch.as_tensor(value))
        prompt = task_named(task).prompt(doc)
        texts = [part for part in (prompt.system, *prompt.parts) if isinstance(part, str)]
        assert sum(all(part.strip() in one for part in texts) for one in shown) == 1
    for task in stock.alike:
        assert theirs[task] == answers[task]
