"""What ``culture-tasks selftest`` finds of a model: right set-ups, and each way in which one is wrong."""

from __future__ import annotations

import json
import re

import pytest
from support.fault_server import FaultServer, Request, completion, fails, raw
from support.judging import KEY

from culture_tasks.benchmarks.interface import Prompt
from culture_tasks.cli.main import main
from culture_tasks.errors import MissingExtraError, SettingsError
from culture_tasks.selftest.findings import finding_of
from culture_tasks.selftest.models import Arrival, HarnessModel, load_model
from culture_tasks.selftest.probes import looks_at
from culture_tasks.settings import Settings

PROBES = ("chat template", "system message", "scripts", "length", "stop strings", "images")


def findings(model: HarnessModel, *subjects: str, data=None):
    looks = dict(looks_at(model, Settings(data=data)))
    return {subject: finding_of(looks[subject]) for subject in subjects or looks}


def states(model, *subjects):
    return {subject: found.state for subject, found in findings(model, *subjects).items()}


@pytest.fixture(scope="module")
def text_model(tiny_lm):
    return load_model("hf", f"pretrained={tiny_lm},device=cpu")


@pytest.fixture(scope="module")
def chat_model(tiny_vlm):
    return load_model("internvl_hf", f"pretrained={tiny_vlm},device=cpu,device_map=cpu")


def test_of_a_text_model_all_but_images_arrives(text_model):
    assert states(text_model, *PROBES) == dict.fromkeys(PROBES, "ok") | {"images": "note"}


def test_of_a_model_with_images_all_but_stop_strings_arrives(chat_model):
    assert states(chat_model, *PROBES) == dict.fromkeys(PROBES, "ok") | {"stop strings": "note"}


def test_images_of_lm_eval_arrive(tiny_vlm):
    model = load_model("hf-multimodal", f"pretrained={tiny_vlm},device=cpu")
    assert states(model, "chat template", "images") == {"chat template": "ok", "images": "ok"}


TURN = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
START = "<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("template", "state", "found"),
    [
        (f"{TURN}{START}", "ok", "the question is whole"),
        ("{{ messages[0]['content'] }}", "fix", "nothing separates"),
        (f"{{{{ messages[0]['content'][:9] }}}}{START}", "fix", "the question is not in the prompt"),
        (f"{TURN}{TURN}{START}", "fix", "the question is twice in the prompt"),
        (None, "note", "the bare question"),
    ],
)
def test_a_chat_template_is_broken(text_model, monkeypatch, template, state, found):
    monkeypatch.setattr(text_model.lm.tokenizer, "chat_template", template)
    of_template = findings(text_model, "chat template")["chat template"]
    assert (of_template.state, found in of_template.found) == (state, True)


def test_a_template_without_system_role_is_found(chat_model, monkeypatch):
    template = chat_model.lm.processor.chat_template
    loop = "{%- for message in messages -%}"
    assert loop in template
    without = template.replace(loop, "{%- for message in messages if message['role'] != 'system' -%}")
    monkeypatch.setattr(chat_model.lm.processor, "chat_template", without)
    found = findings(chat_model, "system message")["system message"]
    assert (found.state, found.found.split(":")[0]) == ("fix", "lost")


def test_a_context_that_is_too_short_is_found(text_model, monkeypatch):
    monkeypatch.setattr(text_model.lm, "_max_length", 200)
    found = findings(text_model, "length")["length"]
    assert (found.state, found.found.endswith("without its beginning")) == ("fix", True)


def test_a_limit_that_is_lost_a_stop_string_that_is_ignored_and_pixels_that_are_dropped(chat_model, monkeypatch):
    engine = chat_model.lm._model
    generate = engine.generate

    def longer(**given):
        given |= {"max_new_tokens": given["max_new_tokens"] + 5, "min_new_tokens": given["max_new_tokens"] + 5}
        return generate(**given)

    monkeypatch.setattr(engine, "generate", longer)
    model = type(chat_model)(chat_model.lm)
    assert states(model, "length", "stop strings") == {"length": "fix", "stop strings": "note"}


def test_images_that_get_lost_or_cut_short_are_found(chat_model, monkeypatch):
    engine = chat_model.lm._model
    generate, tiles = engine.generate, 0

    def given_less(pixel_values=None, **given):
        images = {} if pixel_values is None or not tiles else {"pixel_values": pixel_values[:tiles]}
        return generate(**given, **images)

    monkeypatch.setattr(engine, "generate", given_less)
    assert findings(chat_model, "images")["images"].found == "no pixel values reach the model"
    tiles = 3  # of five: the backend logs the model's error, and replies with nothing
    found = findings(chat_model, "images")["images"]
    assert (found.state, "replied with nothing" in found.remedy) == ("fix", True)
    monkeypatch.setattr(chat_model, "ask", lambda *_, **__: Arrival("red", "…", pixels=9))
    assert findings(chat_model, "images")["images"].found == "an image gives 9 pixel values, two give 9"
    arrivals = [Arrival("?", "…", prompt_tokens=count) for count in (30, 30, 30, 50, 10)]  # as of vLLM
    monkeypatch.setattr(chat_model, "ask", lambda *_, **__: arrivals.pop(0))
    assert findings(chat_model, "images")["images"].found == "one and two arrive: each adds tokens to the prompt"


def test_questions_at_hand_arrive_and_their_hashes_are_stable(chat_model, fixture_data, monkeypatch):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    first, second = (findings(chat_model, "CARE", "CEDAR", data=fixture_data) for _ in range(2))
    assert [found.state for found in first.values()] == ["ok", "ok"]
    assert set(first["CEDAR"].facts["prompts"]) == {"cedar_text", "cedar_multimodal"}
    assert first == second


def test_a_benchmark_without_data_at_hand_is_not_tried(text_model, tmp_path):
    assert findings(text_model, "CVQA", data=tmp_path)["CVQA"].found.startswith("not tried")


# An endpoint of chat completions


def reply_of(request: Request, stop: bool) -> tuple[str, int, int]:
    """What a good model replies, with the tokens of the prompt and of the reply."""
    content = request.body["messages"][-1]["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    repeated = re.search("without another word: (.*)", text)
    if pictures:
        reply = colour_of(pictures[0])
    elif repeated:
        reply = repeated[1]
    else:
        reply = {"Reply": "Papaya", "Which": "Tea", "The": "Zanzibar", "Count": "one, two, three, four"}.get(
            text.split()[0], "Yes"
        )
    for piece in request.body.get("stop") or () if stop else ():
        reply = reply.split(piece)[0]
    return reply, len(text.split()) + 100 * len(pictures), min(len(reply.split()), request.body["max_tokens"])


def colour_of(url: str) -> str:
    import base64
    import io

    from PIL import Image

    pixel = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).getpixel((9, 9))
    return ("red", "green", "blue")[pixel.index(max(pixel))]


def good(request, change=lambda reply: reply, stop=True, **usage):
    reply, sent, new = reply_of(request, stop)
    body = completion(change(reply))
    return raw(json.dumps(body | {"usage": {"prompt_tokens": sent, "completion_tokens": new, **usage}}))


@pytest.fixture
def server():
    running = FaultServer()
    yield running
    running.close()


def of_endpoint(server) -> HarnessModel:
    return load_model("endpoint", f"model=toy,base_url={server.url},max_retries=1")


def has_image(request):
    return isinstance(request.body["messages"][-1]["content"], list)


@pytest.mark.parametrize(
    ("decide", "wrong"),
    [
        (good, {}),
        (lambda request: fails(400) if has_image(request) else good(request), {"images": "fix"}),
        (lambda request: good(request, prompt_tokens=10) if has_image(request) else good(request), {"images": "fix"}),
        (lambda request: good(request, lambda reply: "blue" if has_image(request) else reply), {"images": "note"}),
        (lambda request: good(request, lambda reply: f"{reply}<|im_end|>"), {"chat template": "fix"}),
        (lambda request: good(request, lambda reply: reply.encode("ascii", "replace").decode()), {"scripts": "note"}),
        (lambda request: good(request, completion_tokens=700), {"length": "fix"}),
        (lambda request: good(request, lambda reply: reply.replace("Zan", "Um"), prompt_tokens=0), {"length": "note"}),
        (lambda request: good(request, lambda reply: reply.replace("Papaya", "Hello")), {"system message": "note"}),
        (lambda request: good(request, stop=False), {"stop strings": "note"}),
    ],
)  # fmt: skip
def test_an_endpoint(server, decide, wrong):
    server.decide = decide
    assert states(of_endpoint(server), *PROBES) == dict.fromkeys(PROBES, "ok") | wrong


def test_an_endpoint_is_given_the_words_that_its_address_lacks(server):
    server.decide = good
    assert of_endpoint(server).ask(Prompt(("Count",))).reply == "one, two, three, four"
    assert server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("endpoint", "model=toy", SettingsError, "with model in --model_args. Expected model=NAME and base_url"),
        ("hff", "", SettingsError, "neither harness has the model type 'hff'. Did you mean 'hf'"),
        ("vllm", "pretrained=x", MissingExtraError, "vllm"),
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
    assert "fix   chat template" in printed.out
    assert main([*command, arguments, "--json"]) == 1
    as_json = capsys.readouterr().out
    listed = json.loads(as_json)
    assert (listed["well"], listed["findings"][0]["subject"]) == (False, "model")
    assert KEY not in printed.out + printed.err + as_json
