"""Knowledge insertion with ``backend=vllm``, beside the same runs on transformers with the same weights in float32.

One engine serves all runs: in place of a start, those after the first are given the engine that runs.
"""

from __future__ import annotations

import json
import shutil

import psutil
import pytest
import tiny_models
from PIL import Image
from support.in_process import run_lmms_eval
from support.tiny_encoders import save_tiny_bert, save_tiny_clip
from support.tiny_world import write_release
from transformers import AutoProcessor

from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.insertion.core.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.queries import AnswerDecoding, Query
from culture_tasks.insertion.core.training_data import load_training_data
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.core.vllm_engine import VllmEngine, check_arguments

pytestmark = pytest.mark.filterwarnings("ignore")  # those of vLLM

ROLES = ("reliability", "generality", "cross_language_locality", "cross_scenario_locality")
SINGLE = [f"crosscult_single_{role}" for role in ROLES]
CHAIN = "crosscult_retention_en_zh_ar_ar_after_3"
METHODS = ("base", "ike", "mcki", "mscke", "serac")
ENGINE = {"enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 16}
IMAGES = {"min_patches": 1, "max_patches": 3}
CLOSE = VllmEngine.close
REASONING = "{% if enable_thinking is not defined or enable_thinking %}<think>{% else %}<think></think>{% endif %}"


@pytest.fixture(scope="module")
def folders(vision_model, tmp_path_factory):
    """A model that reasons unless told not to and is penalised for repetitions, and the other models of methods."""
    root = tmp_path_factory.mktemp("checkpoints")
    model = shutil.copytree(vision_model, root / "model")
    processor = AutoProcessor.from_pretrained(model)
    processor.chat_template += REASONING
    processor.save_pretrained(model)
    file = model / "generation_config.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**settings, "repetition_penalty": 1.2, "top_k": 1}), encoding="utf-8")
    return {
        "model": model,
        "replacement": tiny_models.make_tiny_vlm(root / "replacement"),
        "serac": save_tiny_bert(root / "bert"),
        "mscke": save_tiny_clip(root / "clip"),
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two scenarios for training and two for each test, with images of several tiles."""
    folder = write_release(tmp_path_factory.mktemp("world"), range(6), range(2), tests=(2, 3, 4, 5))
    for path in (folder / "crosscult" / "images").iterdir():
        with Image.open(path) as image:
            larger = image.resize((224, 112))
        larger.save(path)
    return folder


@pytest.fixture(scope="module")
def states(folders, world, tmp_path_factory):
    """Fitted methods, whose thresholds let some requests pass and others not."""
    other = {name: {"replacement": str(folders["replacement"]), "encoder": str(folders[name])} for name in METHODS[3:]}
    options = {"ike": {"encoder": "lexical", "demonstrations": 2}, "mcki": {"route_dim": 16}, **other}
    model = MultimodalModel.load(str(folders["model"]), ModelOptions(device="cpu", **IMAGES))
    found = {}
    for name, given in options.items():
        method = method_class(name)(model, method_class(name).read_config(given))
        method.fit(load_training_data(world), ValueStore(None))
        found[name] = tmp_path_factory.mktemp("states") / name
        method.save(found[name])
    return found


@pytest.fixture(scope="module")
def engines():
    """The engines of this module, with the arguments that they were started with: the shared one is never closed."""
    import vllm

    started: list[tuple[dict, vllm.LLM]] = []
    start = vllm.LLM

    def shared(**arguments):
        for others, engine in started:
            if others == arguments:
                return engine
        started.append((arguments, start(**arguments)))
        return started[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vllm, "LLM", shared)
        patch.setattr(VllmEngine, "close", lambda self: None)
        yield started
    for _, engine in started:
        engine.llm_engine.engine_core.shutdown()


@pytest.fixture
def run(folders, world, states, monkeypatch):
    """Runs a method on tasks of lmms-eval, and returns the logged responses by task."""
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(world))
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")

    def run(method, tasks=(*SINGLE, CHAIN), gen_kwargs=None, **arguments):
        state = {"state": str(states[method])} if method in states else {}
        given = {"pretrained": str(folders["model"]), "device": "cpu", "answers": "off", "method": method, **state}
        text = ",".join(f"{name}={value}" for name, value in {**given, **IMAGES, **arguments}.items())
        options = {"model_args": text, "gen_kwargs": gen_kwargs, "bootstrap_iters": 0, "batch_size": 4}
        results = run_lmms_eval("knowledge_insertion", list(tasks), **options)
        return {task: [sample["resps"][0][0] for sample in results["samples"][task]] for task in tasks}

    return run


@pytest.fixture
def run_vllm(run, engines):
    def run_vllm(method, **options):
        return run(method, backend="vllm", **ENGINE, **options)

    return run_vllm


@pytest.mark.parametrize("method", METHODS)
def test_texts_and_routes_are_those_of_transformers(run, run_vllm, method):
    expected, found = run(method), run_vllm(method)
    assert found == expected  # texts, the plain model's, and facts: tokens, insertion that was used, its score
    facts = [json.loads(response[2]) for responses in found.values() for response in responses]
    used = {fact["activated"] for fact in facts}
    assert used == {None} if method in ("base", "ike") else len(used) > 1
    assert len({response[0] for responses in found.values() for response in responses}) > 10


def test_the_engine_has_the_models_settings(run_vllm, engines, folders):
    run_vllm("base", tasks=SINGLE[:1])
    [(arguments, engine)] = engines
    config = engine.llm_engine.vllm_config
    assert (config.model_config.model, str(config.model_config.dtype)) == (str(folders["model"]), "torch.float32")
    assert config.model_config.multimodal_config.mm_processor_kwargs == IMAGES
    assert config.model_config.seed == 1234  # the harness's
    assert not config.model_config.trust_remote_code
    assert (config.model_config.max_model_len, config.model_config.enforce_eager) == (2048, True)
    assert config.scheduler_config.max_num_seqs == 16
    assert arguments["gpu_memory_utilization"] == 0.8


@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("max_new_tokens=5", {}),
        ("temperature=1,top_p=0.9", {}),  # the checkpoint's top_k of 1 makes the likeliest tokens of sampled ones
        (None, {"enable_thinking": True}),
    ],
)
def test_decoding_and_template_options_arrive(run, run_vllm, option, arguments):
    task = SINGLE[:1]
    expected = run("base", task, option, **arguments)
    assert run_vllm("base", tasks=task, gen_kwargs=option, **arguments) == expected
    usual = run("base", task)
    assert (expected == usual) == (option is not None and "temperature" in option)


def test_other_images_are_other_prompts(run):
    counts = [
        [json.loads(response[2])["input_tokens"] for response in run("base", SINGLE[:1], max_patches=most)[SINGLE[0]]]
        for most in (1, 3)
    ]
    assert all(few < many for few, many in zip(*counts, strict=True))


def answered(engine, text, decoding=None):
    image = Image.new("RGB", (56, 56))
    [(_, answer)] = engine.answers([Query.about(image, text)], decoding or AnswerDecoding())
    return answer


def test_what_vllm_cannot_answer_is_said(engines, run_vllm, folders):
    run_vllm("base", tasks=SINGLE[:1])
    model = MultimodalModel.load(str(folders["model"]), ModelOptions(device="cpu", **IMAGES))
    engine = VllmEngine(model, ModelOptions(**IMAGES), {**ENGINE, "seed": 1234})
    assert answered(engine, "What is this?").new_tokens > 0
    assert len(engines) == 1
    assert next(model.model.parameters()).device.type == "meta"  # its memory is the engine's
    with pytest.raises(SettingsError, match="no beams"):
        answered(engine, "What is this?", AnswerDecoding(num_beams=2))
    with pytest.raises(CultureTasksError, match=r"maximum context length is 2048 tokens.*raise max_model_len"):
        answered(engine, "tea " * 4000)
    few, more = (answered(engine, "tea " * words).prompt_tokens for words in (100, 200))
    most = 100 + (2046 - few) * 100 // (more - few)
    with pytest.raises(SettingsError, match=r"cut an answer after \d of 64 tokens"):
        answered(engine, "tea " * most)
    assert answered(engine, "What is this?").new_tokens > 0


def test_what_vllm_has_no_argument_for_is_said_before_anything_is_loaded():
    check_arguments({"tensor_parallel_size": 2, "max_model_len": 4096})
    with pytest.raises(SettingsError, match="Did you mean 'max_model_len'"):
        check_arguments({"max_model_length": 4096})
    with pytest.raises(SettingsError, match="mm_processor_kwargs are set from those of the model"):
        check_arguments({"mm_processor_kwargs": "{}"})


def test_a_closed_engine_gives_its_memory_back(engines, run_vllm, folders):
    """Comes last: it ends the shared engine."""
    run_vllm("base", tasks=SINGLE[:1])
    children = psutil.Process().children(recursive=True)
    parts = [process for process in children if process.memory_info().rss > 2**27]  # Python's helpers are smaller
    assert parts
    model = MultimodalModel.load(str(folders["model"]), ModelOptions(device="cpu", **IMAGES))
    engine = VllmEngine(model, ModelOptions(**IMAGES), {**ENGINE, "seed": 1234})
    answered(engine, "What is this?")
    engines.clear()
    CLOSE(engine)
    assert not psutil.wait_procs(parts, timeout=60)[1]
