"""What ``culture-tasks selftest`` finds of a model: right set-ups, and each way in which one is wrong."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from support.fault_server import FaultServer, Request, completion, fails, raw
from support.judging import KEY

from culture_tasks.benchmarks.interface import Prompt
from culture_tasks.cli.main import main
from culture_tasks.errors import SettingsError
from culture_tasks.selftest.findings import finding_of
from culture_tasks.selftest.models import Arrival, HarnessModel, load_model
from culture_tasks.selftest.probes import images


def state(model: HarnessModel):
    return finding_of(partial(images, model)).state


@pytest.fixture(scope="module")
def text_model(tiny_lm):
    return load_model("hf", f"pretrained={tiny_lm}")  # on the CPU where there is no GPU, as by `lm-eval run`


@pytest.fixture(scope="module")
def chat_model(tiny_vlm):
    return load_model("internvl_hf", f"pretrained={tiny_vlm},device=cpu,device_map=cpu")


def test_images_arrive_in_both_harnesses_unless_the_model_takes_text_only(text_model, chat_model, tiny_vlm):
    both = load_model("hf-multimodal", f"pretrained={tiny_vlm}")
    assert [state(model) for model in (text_model, chat_model, both)] == ["note", "ok", "ok"]


def test_images_that_get_lost_or_cut_short_are_found(chat_model, monkeypatch):
    engine = chat_model.lm._model
    generate, tiles = engine.generate, 0

    def given_less(pixel_values=None, **given):
        images = {} if pixel_values is None or not tiles else {"pixel_values": pixel_values[:tiles]}
        return generate(**given, **images)

    monkeypatch.setattr(engine, "generate", given_less)
    assert images(chat_model).found == "no pixel values reach the model"
    tiles = 3  # of five: the backend logs the model's error, and replies with nothing
    found = finding_of(partial(images, chat_model))
    assert (found.state, "replied with nothing" in found.remedy) == ("fix", True)
    monkeypatch.setattr(chat_model, "ask", lambda *_, **__: Arrival("red", pixels=9))
    assert images(chat_model).found == "an image gives 9 pixel values, two give 9"
    arrivals = [Arrival("?", prompt_tokens=count) for count in (10, 30, 30, 30, 50)]  # as of vLLM
    monkeypatch.setattr(chat_model, "ask", lambda *_, **__: arrivals.pop(0))
    assert images(chat_model).found == "one and two arrive: each adds tokens to the prompt"


# An endpoint of chat completions


def reply_of(request: Request) -> tuple[str, int]:
    """What a good model replies, with the tokens of the prompt."""
    content = request.body["messages"][-1]["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    reply = colour_of(pictures[0]) if pictures else "one, two, three, four" if text.startswith("Count") else "Yes"
    return reply, len(text.split()) + 100 * len(pictures)


def colour_of(url: str) -> str:
    import base64
    import io

    from PIL import Image

    pixel = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).getpixel((9, 9))
    return ("red", "green", "blue")[pixel.index(max(pixel))]


def good(request, change=lambda reply: reply, **usage):
    reply, sent = reply_of(request)
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
    ("decide", "expected"),
    [
        (good, "ok"),
        (lambda request: fails(400) if images_in(request) else good(request), "note"),
        (lambda request: fails(400) if images_in(request) > 1 else good(request), "fix"),
        (lambda request: good(request, prompt_tokens=10) if images_in(request) else good(request), "fix"),
        (lambda request: good(request, lambda reply: "blue" if images_in(request) else reply), "note"),
    ],
)
def test_an_endpoint(server, decide, expected):
    server.decide = decide
    assert state(of_endpoint(server)) == expected


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
    assert "fix   images" in printed.out
    assert main([*command, arguments, "--json"]) == 1
    as_json = capsys.readouterr().out
    listed = json.loads(as_json)
    assert (listed["well"], listed["findings"][0]["subject"]) == (False, "model")
    assert KEY not in printed.out + printed.err + as_json
    assert main(["selftest", "--no-judge"]) == 1
    assert "there is nothing to check. Name a --model" in capsys.readouterr().err
