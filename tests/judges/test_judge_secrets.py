"""Addresses, keys and headers, which reach no log, error, cache, verdict or identity."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import asdict
from urllib.parse import quote

import pytest
from support.fault_server import fails, hangs, raw, resets, says
from support.judging import BRIEF, KEY, ask, ask_all

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.endpoint.addresses import Secrets, address_of
from culture_tasks.judges.selection import parse_spec
from culture_tasks.settings import Settings

PASSWORD = "pass-word-0123456789"
TOKEN = "query-token-0123456789"
CREDENTIALS = base64.b64encode(f"somebody:{PASSWORD}".encode()).decode()
SECRETS = (KEY, PASSWORD, TOKEN, CREDENTIALS)
SHORT = "tiny/key"


def assert_hidden(secrets, texts, folder=None):
    files = [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()] if folder else []
    assert files or folder is None
    assert [secret for secret in secrets for text in [*texts, *files] if secret in text] == []


def as_text(verdicts):
    return json.dumps([asdict(verdict) for verdict in verdicts])


@pytest.mark.parametrize("with_password", [False, True])
def test_no_secret_leaves(server, judge_for, items, caplog, tmp_path, with_password):
    echo = {"Set-Cookie": KEY, "X-Echo": KEY}
    faults = [
        fails(401, echo, message=f"bad key {KEY} {PASSWORD} {TOKEN}"),
        raw(f"<html>{KEY} {PASSWORD}", 500, echo),
        raw(f"not json {KEY} {TOKEN}"),
        fails(401, message="x" * 285 + f" bad key {KEY}"),
        fails(403, message=f"{CREDENTIALS} {quote('somebody:' + PASSWORD)}", code=KEY, param=KEY),
        raw(json.dumps({"choices": KEY})),
        says(f"Bearer {KEY} {PASSWORD} {TOKEN} {CREDENTIALS}\nrating=2"),
        says(None, refusal=f"no, {KEY}"),
        says(f"what? {KEY}"),
        resets,
        hangs,
        raw("", 307, {"Location": f"http://{KEY}@127.0.0.1:9/"}),
    ]
    server.decide = lambda request: faults[int(request.text.split("What is dish ")[1].split("?")[0]) % len(faults)]
    url = server.url.replace("127", f"somebody:{PASSWORD}@127") + f"?token={TOKEN}" if with_password else server.url
    judge = judge_for(openai_base_url=url, judge_timeout=0.3, patience=BRIEF)
    with caplog.at_level(logging.DEBUG):
        verdicts = ask_all(judge, items(24))
    shown = [caplog.text, as_text(verdicts), json.dumps(judge.identity(LAVE).json), repr(judge.__dict__)]
    with pytest.raises(JudgeUnreachableError) as caught:
        judge.check([(LAVE, item) for item in items(1)])
    shown.append(str(caught.value))
    judge.close()
    assert {verdict.outcome for verdict in verdicts} == {"scored", "unparsable", "refused", "failed"}
    assert_hidden(SECRETS if with_password else [KEY], shown, tmp_path)
    authorization = f"Basic {CREDENTIALS}" if with_password else f"Bearer {KEY}"
    assert {request.headers["authorization"] for request in server.requests} == {authorization}
    assert {"token" in request.path for request in server.requests} == {with_password}


def test_eight_characters_or_more_of_a_key_are_hidden_in_an_error():
    found = Secrets(["sk-0123456789abcdef"]).hidden("bad key sk-01234567… (ends with 9abcdef)")
    assert found == "bad key ***… (ends with 9abcdef)"


def test_a_judge_s_words_stay_as_they_are(server, judge_for, item):
    secrets = Secrets(["rating", "sk-very-secret-0123456789"])
    message = "100 % \\u0041 &#65; the rating=2"
    assert secrets.hidden_in_reply(message) == message
    assert secrets.hidden("the rating") == "the ***"
    for placeholder in ("EMPTY", "ollama", "none", "token-abc123", "abc", ""):
        assert Secrets([placeholder]).hidden(f"model {placeholder} not found") == f"model {placeholder} not found"
    server.script(says("EMPTY 2 rating=2"))
    assert ask(judge_for(openai_api_key="2"), item).completion == "EMPTY 2 rating=2"


ARGUMENTS = f"base_url=https://somebody:{PASSWORD}@host/v1?sig={TOKEN},model=m,api_key={KEY},num_concurrent=4"


def test_settings_names_and_in_process_judges_show_no_secret_of_their_arguments(
    double, settings_for, local_judge_for, item, caplog
):
    def breaks(options):
        raise ConnectionError(f"{options} {KEY} sig={TOKEN}")

    double.create_from_arg_obj = breaks
    changes = {"judge": f"lm_eval:local-chat-completions,{ARGUMENTS}", "openai_api_key": "sk-env-key-0123456789"}
    settings, spec = settings_for(**changes), parse_spec(changes["judge"])
    judge = local_judge_for(spec.model, **changes)
    shown = [repr(settings), str(spec), repr(spec), json.dumps(judge.identity(LAVE).json), repr(judge.__dict__)]
    for wrong in (f"lm-eval:x,{ARGUMENTS}", f"https://u:{PASSWORD}@host/?sig={TOKEN}", f"none:{ARGUMENTS}"):
        with pytest.raises(SettingsError) as caught:
            parse_spec(wrong)
        shown.append(str(caught.value))
    assert judge.identity(LAVE).model == "model=m,api_key=***"
    errors = [verdict.error for verdict in ask_all(judge, [item] * 2)]
    judge.close()
    assert all("ConnectionError" in text for text in [*errors, caplog.text])
    assert_hidden([*SECRETS, "somebody"], [*shown, *errors, caplog.text])


def test_an_exception_of_our_code_is_free_of_secrets(judge_for, item, monkeypatch, caplog):
    def broken(self, text):
        raise ZeroDivisionError(f"{KEY} {quote(PASSWORD)}")

    monkeypatch.setattr(Secrets, "hidden_in_reply", broken)
    verdict = ask(judge_for(patience=BRIEF), item)
    assert "ZeroDivisionError" in verdict.error
    assert_hidden([KEY], [verdict.error, caplog.text])


AZURE = {"azure_endpoint": "https://mine.openai.azure.com/", "openai_api_version": "2024-10-21"}
ON_AZURE = "https://mine.openai.azure.com/openai/deployments/gpt%204o/chat/completions?api-version=2024-10-21"
LOCAL = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("settings", "url", "shown", "headers"),
    [
        (
            {"openai_api_key": "k\n"},  # a key file's line end
            "https://api.openai.com/v1/chat/completions",
            "https://api.openai.com/v1",
            {"Authorization": "Bearer k"},
        ),
        ({"openai_base_url": LOCAL}, f"{LOCAL}/chat/completions", LOCAL, {}),
        ({"openai_base_url": f"{LOCAL}/"}, f"{LOCAL}/chat/completions", LOCAL, {}),
        ({**AZURE, "azure_api_key": "k"}, ON_AZURE, "https://mine.openai.azure.com", {"api-key": "k"}),
        ({**AZURE, "openai_base_url": LOCAL}, f"{LOCAL}/chat/completions", LOCAL, {}),  # goes before Azure
    ],
)
def test_an_address_is_that_of_the_settings(settings, url, shown, headers):
    address = address_of(Settings(**settings), "gpt 4o")
    assert (address.url, address.name, address.headers) == (url, shown, headers)
    assert not address.is_keyless_openai
    assert address_of(Settings(), "gpt-4o").is_keyless_openai


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({"openai_base_url": url}, "not a URL") for url in ("localhost:8000", "ftp://x/v1", "http://[x", "/v1")),
        ({"azure_endpoint": "https://mine.openai.azure.com"}, "without OPENAI_API_VERSION"),
    ],
)
def test_an_address_that_is_none_is_refused(settings, message):
    with pytest.raises(SettingsError, match=message):
        address_of(Settings(**settings), "m")


def test_headers_can_not_be_split():
    with pytest.raises(SettingsError, match="line break") as caught:
        address_of(Settings(openai_api_key="a-secret-or-name\r\nX-Evil: 1"), "m")
    assert "a-secret-or-name" not in str(caught.value)
