"""What a backend of ``knowledge_insertion`` is given of the method's settings, and what stops a run before it loads.

Classes are lmms-eval's own, with a constructor of the same signature that only records its arguments. For ``vllm`` the
whole class runs, over an engine that records them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from lmms_eval.models import MODEL_REGISTRY_V2, ModelManifest
from PIL import Image
from support.tiny_families import FAMILIES

from culture_tasks.errors import SettingsError
from culture_tasks.harness.lmms_eval.backend import Backend
from culture_tasks.insertion.core.adapter import ModelOptions
from culture_tasks.insertion.core.decoding import Decoding
from culture_tasks.insertion.core.encoding import Encoding
from culture_tasks.insertion.core.queries import Query

REASONING = "{%- if enable_thinking is not defined or enable_thinking %}<think>{% else %}<think></think>{% endif %}"
SETTINGS = {
    "revision": {"revision": "v2"},
    "dtype": {"dtype": "bfloat16"},
    "attn_implementation": {"attn_implementation": "eager"},
    "max_patches": {"images": {"max_patches": 3}},
    "max_pixels": {"images": {"max_pixels": 3136}},
    "enable_thinking": {"template": {"enable_thinking": False}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A processor without a model, whose template lets the model reason unless told not to."""
    folder = tmp_path_factory.mktemp("checkpoint")
    processor("qwen2_5_vl").save_pretrained(folder)
    return folder


@functools.cache
def processor(family):
    made = FAMILIES[family]().processor
    made.chat_template += REASONING
    return made


@pytest.fixture
def record(monkeypatch):
    """Makes the constructor of a class of lmms-eval record its arguments, and returns the record."""
    parts = ("srt.function_call.function_call_parser", "srt.entrypoints.openai.protocol")
    for package in ("decord", "sglang", *(f"sglang.{part}" for part in parts)):  # which aren't installed
        monkeypatch.setitem(sys.modules, package, MagicMock())

    def replace(name):
        model, arguments = MODEL_REGISTRY_V2.get_model_class(name), {}
        original = model.__init__

        @functools.wraps(original)
        def init(self, *positional, **named):
            inspect.signature(original).bind(self, *positional, **named)
            arguments.update(named)

        monkeypatch.setattr(model, "__init__", init)
        monkeypatch.setattr(model, "generate_until", lambda _, requests: ["yes" for _ in requests])
        return arguments

    yield replace
    for name in ("sglang", "qwen2_5_vl", "qwen3_5", "qwen3_vl"):
        for kind in ("chat", "simple"):
            sys.modules.pop(f"lmms_eval.models.{kind}.{name}", None)


def query():
    return Query.about(Image.new("RGB", (56, 56), (9, 99, 199)), "Is this fine?", "Be brief.")


def ask(name, given=None, *, pretrained="checkpoint", batch_size=1, **options):
    chosen = ModelOptions(**options)
    backend = Backend(name, given or {}, pretrained=str(pretrained), options=chosen, batch_size=batch_size)
    return [reply.text for _, reply in backend.answers([query()], [Decoding()])]


@pytest.fixture
def processors(monkeypatch):
    """Takes the place of loading the processor."""
    monkeypatch.setattr(
        "culture_tasks.harness.lmms_eval.backend.load_encoding",
        lambda family, options: Encoding(processor(family), options.template, options.images),
    )


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "name", ["internvl_hf", "huggingface", "qwen2_5_vl", "qwen3_5", "neo_ov", "async_openai", "vllm_generate", "sglang"]
)
def test_a_setting_arrives_or_the_run_stops(processors, record, name, setting):
    arguments = record(name)
    options = {"template": {}, **SETTINGS[setting]}
    family = "internvl" if setting == "max_patches" else "qwen2_5_vl"
    [value] = SETTINGS[setting].values()
    try:
        ask(name, pretrained=family, **options)
    except SettingsError as error:
        refusal = str(error)
    else:
        refusal = None
    if refusal is not None:
        assert not arguments
        assert f"backend={name} can't be given {setting}=" in refusal
    elif isinstance(value, dict):
        assert (
            value.items() <= arguments.items()
            or value == arguments.get("mm_processor_kwargs")
            or "chat_template" in arguments
        )
    else:
        assert value == arguments[{"neo_ov": {"dtype": "torch_dtype"}}.get(name, {}).get(setting, setting)]


class Engine:
    """vLLM's engine, as far as lmms-eval's class uses it, with no argument that it doesn't know."""

    latest = None

    def __init__(
        self,
        model,
        *,
        tensor_parallel_size,
        data_parallel_size,
        gpu_memory_utilization,
        trust_remote_code,
        disable_log_stats,
        seed,
        revision=None,
        dtype="auto",
        mm_processor_kwargs=None,
    ):
        self.loaded = {"revision": revision, "dtype": dtype, "images": mm_processor_kwargs, "trust": trust_remote_code}
        Engine.latest = self

    def chat(self, *, sampling_params, messages, chat_template):
        self.template = chat_template
        return [SimpleNamespace(outputs=[SimpleNamespace(text="yes")]) for _ in messages]

    def get_metrics(self):
        return []


@pytest.mark.parametrize("reasons", [False, True])
def test_vllm_sees_the_images_and_the_prompt_of_the_method(folder, monkeypatch, reasons):
    MODEL_REGISTRY_V2.get_model_class("vllm")
    for kind in ("simple", "chat"):
        monkeypatch.setattr(f"lmms_eval.models.{kind}.vllm.LLM", Engine)
        monkeypatch.setattr(f"lmms_eval.models.{kind}.vllm.SamplingParams", dict)
    options = {"images": {"max_pixels": 3136}, "template": {"enable_thinking": reasons}}
    found = ask("vllm", pretrained=folder, batch_size=4, revision="v2", dtype="bfloat16", **options)
    assert found == ["yes"]
    engine = Engine.latest
    assert engine.loaded == {"revision": "v2", "dtype": "bfloat16", "images": {"max_pixels": 3136}, "trust": False}
    ours, messages = processor("qwen2_5_vl"), query().messages()
    shown = ours.apply_chat_template(messages, chat_template=engine.template, add_generation_prompt=True)
    assert shown == Encoding(ours, options["template"]).encode([messages]).prompts[0]
    assert shown.endswith("<think>" if reasons else "<think></think>")
    assert (engine.template is None) == reasons  # the template's own choice needs no other template


def test_a_class_with_limits_of_images_gets_the_checkpoints(processors, record):
    arguments = record("qwen2_5_vl")
    ask("qwen2_5_vl", pretrained="qwen2_5_vl", template={})
    size = processor("qwen2_5_vl").image_processor.size
    assert (arguments["min_pixels"], arguments["max_pixels"]) == (size["shortest_edge"], size["longest_edge"])


def test_the_backends_own_value_of_a_setting_is_enough(processors, record):
    arguments = record("vllm_generate")
    ask("vllm_generate", {"backend_revision": "v3"}, pretrained="internvl", revision="v2", template={})
    assert arguments["revision"] == "v3"


def test_a_class_whose_packages_are_missing_says_which():
    manifest = ModelManifest(model_id="absent", chat_class_path="package_that_is_missing.Model")
    MODEL_REGISTRY_V2.register_manifest(manifest, overwrite=True)
    with pytest.raises(SettingsError, match=r"backend=absent can't be imported \(.*'package_that_is_missing'\)"):
        ask("absent")


def test_a_class_without_batches_says_what_to_do(processors, record):
    arguments = record("internvl_hf")
    with pytest.raises(SettingsError, match=r"answers one request at a time.*backend_batch_size=1"):
        ask("internvl_hf", pretrained="internvl", batch_size=16, template={})
    assert not arguments
    ask("internvl_hf", {"backend_batch_size": "1"}, pretrained="internvl", batch_size=16, template={})
    assert arguments["batch_size"] == "1"
