"""What ``culture-tasks selftest`` finds of a model: right set-ups, and each way in which one is wrong."""

from __future__ import annotations

import base64
import io
import json
from functools import partial

import pytest
from PIL import Image
from support.fault_server import FaultServer, Request, fails, says
from support.judging import KEY

from culture_tasks.cli.main import main
from culture_tasks.errors import SettingsError
from culture_tasks.selftest.findings import finding_of
from culture_tasks.selftest.models import Answer, load_model
from culture_tasks.selftest.probes import images


def state(model):
    return finding_of(partial(images, model)).state


@pytest.fixture(scope="module")
def chat_model(tiny_vlm):
    return load_model("internvl_hf", f"pretrained={tiny_vlm},device=cpu,device_map=cpu")


def test_images_arrive_in_both_harnesses_unless_the_model_takes_text_only(chat_model, tiny_lm, tiny_vlm):
    text_only = load_model("hf", f"pretrained={tiny_lm}")  # on the CPU where there is no GPU, as by `lm-eval run`
    both = load_model("hf-multimodal", f"pretrained={tiny_vlm}")
    assert [state(model) for model in (text_only, chat_model, both)] == ["note", "ok", "ok"]


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
    monkeypatch.setattr(chat_model, "ask", lambda *_: Answer("red", pixels=9))
    assert images(chat_model).found == "an image gives 9 pixel values, two give 9"


# An endpoint of chat completions


def pictures_in(request: Request) -> list[str]:
    content = request.body["messages"][-1]["content"]
    return [part["image_url"]["url"] for part in content if isinstance(part, dict) and part["type"] == "image_url"]


def colour_in(request: Request) -> str:
    """What a good model replies: the colour of the first image."""
    if not pictures_in(request):
        return "Which square?"
    content = base64.b64decode(pictures_in(request)[0].partition(",")[2])
    pixel = Image.open(io.BytesIO(content)).getpixel((9, 9))
    return ("red", "green", "blue")[pixel.index(max(pixel))]


@pytest.fixture
def server():
    running = FaultServer()
    yield running
    running.close()


def arguments(server):
    return f"model=toy,base_url={server.url}/chat/completions,max_retries=1,max_images=4"


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (lambda request: says(colour_in(request)), "ok"),
        (lambda _: fails(400), "fix"),
        (lambda request: fails(400) if pictures_in(request) else says("Which square?"), "note"),
        (lambda request: fails(400) if len(pictures_in(request)) > 1 else says(colour_in(request)), "note"),
        (lambda request: says(colour_in(request).replace("red", "green")), "note"),
        (lambda _: says("I see no image."), "fix"),
    ],
)
def test_an_endpoint(server, decide, expected):
    server.decide = decide
    assert state(load_model("local-chat-completions", arguments(server))) == expected


@pytest.mark.parametrize(
    ("name", "message"), [("hff", "neither harness has the model type 'hff'. Did you mean 'hf'"), ("vllm", "vllm")]
)
def test_a_model_that_cannot_be_loaded(name, message):
    with pytest.raises(SettingsError, match=message):
        load_model(name, "pretrained=x")


def test_the_command_prints_one_screen_or_json_and_no_key(server, capsys):
    server.decide = lambda _: fails(401)
    command = ["selftest", "--no-judge", "--model", "local-chat-completions", "--model_args"]
    secret = f"{arguments(server)},auth_token={KEY}"
    assert main([*command, secret]) == 1
    printed = capsys.readouterr()
    assert "fix   images" in printed.out
    assert main([*command, secret, "--json"]) == 1
    as_json = capsys.readouterr().out
    assert [row["subject"] for row in json.loads(as_json)["findings"]] == ["model", "images"]
    assert KEY not in printed.out + printed.err + as_json
    assert main(["selftest", "--no-judge"]) == 1
    assert "there is nothing to check. Name a --model" in capsys.readouterr().err
