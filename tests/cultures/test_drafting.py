"""A model fills in a step: every reply is saved as it comes, and only what is missing is asked again."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from PIL import Image
from support import toy_culture
from support.fault_server import FaultServer, fails, says

from culture_tasks.benchmarks.culture_forms import Ask
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.cultures.drafting import draft
from culture_tasks.errors import DataError, JudgeError, SettingsError
from culture_tasks.settings import Settings


def read(reply):
    if not reply.startswith("{"):
        raise ValueError("expected an object")
    return json.loads(reply)


ASK = Ask(
    lambda row: Prompt((Picture(), f"Rate {row.name}") if row.image else (f"Rate {row.name}",), system="You rate."),
    read,
    Decoding(max_tokens=50, temperature=0.7),
    "toy.v1",
)


@pytest.fixture
def server():
    server = FaultServer()
    yield server
    server.close()


@pytest.fixture
def project(tmp_path):
    project = toy_culture.project(tmp_path)
    Image.new("RGB", (8, 8), "red").save(project.folder / "images" / "tea.png")
    steps = dict(project.steps)
    steps["rate"] = replace(steps["rate"], ask=ASK)
    vars(project)["steps"] = steps
    return project


def ask(project, server, model="openai:small", **options):
    settings = Settings(openai_base_url=server.url, openai_api_key="sk-secret", judge_patience=0.2)
    return draft(project, "rate", model, settings, progress=lambda: None, **options)


def test_replies_are_saved_and_only_what_is_missing_is_asked_again(project, server):
    rows = [row.name for row in project.step("rate").rows(project.state())]
    replies = {rows[0]: '{"rating": 7}', rows[1]: "no idea", rows[2]: '{"rating": 70}'}
    server.decide = lambda seen: says(next(replies[name] for name in rows if name in str(seen.body["messages"])))
    first = ask(project, server)
    assert (first.saved, first.before) == (1, 0)
    assert dict(first.failed) == {
        rows[1]: "the reply can't be read: expected an object",
        rows[2]: "column 'rating': found 70. Expected a whole number from 1 to 10",
    }
    replies |= dict.fromkeys(rows[1:], '{"rating": 3}')
    assert ask(project, server) == (2, 1, [])
    assert ask(project, server) == (0, 3, [])
    assert len(server.requests) == 5
    entries = project.state().model_entries("rate", rows[0])
    assert [(entry.person, entry.values) for entry in entries] == [("model:small", {"rating": 7})]
    assert "sk-secret" not in (project.folder / "entries.jsonl").read_text("utf-8")


def test_the_model_sees_the_image_and_the_system_message(project, server):
    server.decide = lambda seen: says('{"rating": 7}')
    ask(project, server, most=1)
    (seen,) = server.requests
    system, user = seen.body["messages"]
    assert system == {"role": "system", "content": "You rate."}
    image, text = user["content"]
    png = (project.folder / "images" / "tea.png").read_bytes()
    assert base64.b64decode(image["image_url"]["url"].partition(",")[2]) == png
    assert text["text"].startswith("Rate ")
    assert (seen.body["max_tokens"], seen.body["temperature"]) == (50, 0.7)


def test_what_a_second_call_cannot_mend_ends_the_first(project, server):
    server.decide = lambda seen: fails(401)
    with pytest.raises(JudgeError, match="What was drafted is saved"):
        ask(project, server)
    with pytest.raises(SettingsError, match="Expected openai:NAME"):
        ask(project, server, model="small")
    with pytest.raises(DataError, match=r"'write' is done by people alone. Steps for models: rate"):
        draft(project, "write", "openai:small", Settings(), progress=lambda: None)
