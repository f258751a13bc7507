"""What ``culture-tasks selftest`` finds of a model: right set-ups, and each way in which one is wrong."""

from __future__ import annotations

import json
import re

import pytest
from support.fault_server import FaultServer, Request, completion, fails, raw
from support.judging import KEY

from culture_tasks.benchmarks.interface import Prompt
from culture_tasks.cli.main import main
from culture_tasks.errors import SettingsError
from culture_tasks.selftest import findings as findings_module
from culture_tasks.selftest.findings import Finding, advised_without_gpu, finding_of
from culture_tasks.selftest.models import Arrival, HarnessModel, load_model
from culture_tasks.selftest.probes import looks_at

PROBES = ("stop strings", "images")


def findings(model: HarnessModel):
    return {subject: finding_of(look) for subject, look in looks_at(model)}


def states(model):
    return {subject: found.state for subject, found in findings(model).items()}


@pytest.fixture(scope="module")
def text_model(tiny_lm):
    return load_model("hf", f"pretrained={tiny_lm}")  # on the CPU where there is no GPU, as by `lm-eval run`


@pytest.fixture(scope="module")
def chat_model(tiny_vlm):
    return load_model("internvl_hf", f"pretrained={tiny_vlm},device=cpu,device_map=cpu")


def test_of_a_text_model_all_but_images_arrives(text_model):
    assert states(text_model) == dict.fromkeys(PROBES, "ok") | {"images": "note"}


def test_of_a_model_with_images_all_but_stop_strings_arrives(chat_model):
    assert states(chat_model) == dict.fromkeys(PROBES, "ok") | {"stop strings": "note"}


def test_images_of_lm_eval_arrive(tiny_vlm):
    model = load_model("hf-multimodal", f"pretrained={tiny_vlm}")
    assert states(model)["images"] == "ok"


def test_images_that_get_lost_or_cut_short_are_found(chat_model, monkeypatch):
    engine = chat_model.lm._model
    generate, tiles = engine.generate, 0

    def given_less(pixel_values=None, **given):
        images = {} if pixel_values is None or not tiles else {"pixel_values": pixel_values[:tiles]}
        return generate(**given, **images)

    monkeypatch.setattr(engine, "generate", given_less)
    assert findings(chat_model)["images"].found == "no pixel values reach the model"
    tiles = 3  # of five: the backend logs the model's error, and replies with nothing
    found = findings(chat_model)["images"]
    assert (found.state, "replied with nothing" in found.remedy) == ("fix", True)
    monkeypatch.setattr(chat_model, "ask", lambda *_, **__: Arrival("red", pixels=9))
    assert findings(chat_model)["images"].found == "an image gives 9 pixel values, two give 9"
    arrivals = [Arrival("?", prompt_tokens=count) for count in (10, 10, 30, 30, 30, 50)]  # as of vLLM
    monkeypatch.setattr(chat_model, "ask", lambda *_, **__: arrivals.pop(0))
    assert findings(chat_model)["images"].found == "one and two arrive: each adds tokens to the prompt"


# An endpoint of chat completions


def reply_of(request: Request, stop: bool) -> tuple[str, int]:
    """What a good model replies, with the tokens of the prompt."""
    content = request.body["messages"][-1]["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    reply = colour_of(pictures[0]) if pictures else "one, two, three, four" if text.startswith("Count") else "Yes"
    for piece in request.body.get("stop") or () if stop else ():
        reply = reply.split(piece)[0]
    return reply, len(text.split()) + 100 * len(pictures)


def colour_of(url: str) -> str:
    import base64
    import io

    from PIL import Image

    pixel = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).getpixel((9, 9))
    return ("red", "green", "blue")[pixel.index(max(pixel))]


def good(request, change=lambda reply: reply, stop=True, **usage):
    reply, sent = reply_of(request, stop)
    return raw(json.dumps(completion(change(reply)) | {"usage": {"prompt_tokens": sent, **usage}}))


@pytest.fixture
def server():
    running = FaultServer()
    yield running
    running.close()


def of_endpoint(server) -> HarnessModel:
    return load_model("endpoint", f"model=toy,base_url={server.url},max_retries=1")


def images_in(request):
    return str(request.body["messages"][-1]["content"]).count("data:image")


@pytest.mark.parametrize(
    ("decide", "wrong"),
    [
        (good, {}),
        (lambda request: fails(400) if images_in(request) else good(request), {"images": "note"}),
        (lambda request: fails(400) if images_in(request) > 1 else good(request), {"images": "fix"}),
        (lambda request: good(request, prompt_tokens=10) if images_in(request) else good(request), {"images": "fix"}),
        (lambda request: good(request, lambda reply: "blue" if images_in(request) else reply), {"images": "note"}),
        (lambda request: good(request, stop=False), {"stop strings": "note"}),
    ],
)  # fmt: skip
def test_an_endpoint(server, decide, wrong):
    server.decide = decide
    assert states(of_endpoint(server)) == dict.fromkeys(PROBES, "ok") | wrong


def test_an_endpoint_is_given_the_words_that_its_address_lacks(server):
    server.decide = good
    assert of_endpoint(server).ask(Prompt(("Count",))).reply == "one, two, three, four"
    assert server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("endpoint", "model=toy", SettingsError, "with model in --model_args. Expected model=NAME and base_url"),
        ("hff", "", SettingsError, "neither harness has the model type 'hff'. Did you mean 'hf'"),
        ("vllm", "pretrained=x", SettingsError, "vllm"),
    ],
)
def test_a_model_that_cannot_be_loaded(name, arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        load_model(name, arguments)


def test_the_command_prints_one_screen_or_json_and_no_key(server, capsys):
    server.decide = lambda _: fails(401)
    command = ["selftest", "--no-judge", "--model", "endpoint", "--model_args"]
    arguments = f"model=toy,base_url={server.url},max_retries=1,auth_token={KEY}"
    assert main([*command, arguments]) == 1
    printed = capsys.readouterr()
    assert "fix   stop strings" in printed.out
    assert main([*command, arguments, "--json"]) == 1
    as_json = capsys.readouterr().out
    listed = json.loads(as_json)
    assert (listed["well"], listed["findings"][0]["subject"]) == (False, "model")
    assert KEY not in printed.out + printed.err + as_json


@pytest.mark.parametrize("number", [0, 1])
def test_without_a_gpu_the_advice_is_to_do_without(monkeypatch, number):
    monkeypatch.setattr(findings_module, "gpus", lambda: number)
    driver = Finding("fix", "can't be looked at (RuntimeError: Found no NVIDIA driver on your system)")
    package = Finding("fix", "can't be used", "--model vllm needs the package 'vllm'")
    for found in (driver, package):
        assert ("device=cpu" in advised_without_gpu(found).remedy) == (number == 0)
    other = Finding("fix", "no pixel values reach the model", "Leave image tasks out")
    assert advised_without_gpu(other) == other
