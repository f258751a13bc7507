"""Keys and headers never reach a log, an error message, the cache, a verdict or an identity."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import asdict
from urllib.parse import quote

import pytest
from support.fault_server import fails, hangs, raw, resets, says
from support.judging import KEY

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.endpoint.redaction import Secrets
from culture_tasks.judges.local.in_process import InProcessJudge
from culture_tasks.judges.selection import parse_spec
from culture_tasks.settings import Settings

BRIEF = Patience(longest=0.5, first=0.01, cap=0.02)
PASSWORD = "pass-word-0123456789"
TOKEN = "query-token-0123456789"
SECRETS = (KEY, PASSWORD, TOKEN, "c29tZWJvZHk6cGFzcy13b3JkLTAxMjM0NTY3ODk=")


@pytest.mark.parametrize("with_password", [False, True])
def test_no_secret_leaves(server, judge_for, items, caplog, tmp_path, with_password):
    echo = {"Set-Cookie": KEY, "X-Echo": KEY}
    faults = [
        fails(401, echo, message=f"bad key {KEY} {PASSWORD} {TOKEN}"),
        raw(f"<html>{KEY} {PASSWORD}", 500, echo),
        raw(f"not json {KEY} {TOKEN}"),
        raw(json.dumps({"choices": KEY})),
        says(f"Bearer {KEY} {PASSWORD} {TOKEN} {SECRETS[-1]}\nrating=2"),
        says(None, refusal=f"no, {KEY}"),
        says(f"what? {KEY}"),
        resets,
        hangs,
        raw("", 307, {"Location": f"http://{KEY}@127.0.0.1:9/"}),
    ]
    server.decide = lambda seen: faults[int(seen.text.split("What is dish ")[1].split("?")[0]) % len(faults)]
    url = server.url.replace("127", f"somebody:{PASSWORD}@127") + f"?token={TOKEN}" if with_password else server.url
    judge = judge_for(openai_base_url=url, judge_timeout=0.3, patience=BRIEF)
    with caplog.at_level(logging.DEBUG):
        verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(20)]]
    identity = judge.identity(LAVE).json
    shown = [
        caplog.text,
        json.dumps([asdict(verdict) for verdict in verdicts]),
        json.dumps(identity),
        repr(judge.__dict__),
    ]
    judge.close()
    files = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert {verdict.outcome for verdict in verdicts} == {"scored", "unparsable", "refused", "failed"}
    for secret in SECRETS if with_password else [KEY]:
        assert all(secret not in text for text in [*shown, *files])
    wanted = f"Basic {SECRETS[-1]}" if with_password else f"Bearer {KEY}"
    assert {seen.headers["authorization"] for seen in server.requests} == {wanted}
    assert {"token" in seen.path for seen in server.requests} == {with_password}


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_what_a_proxy_echoes_of_its_credentials_is_hidden(
    server, judge_for, items, caplog, tmp_path, monkeypatch, scheme
):
    def decide(seen):
        echo = f"{seen.headers['proxy-authorization']} {PASSWORD} {quote('someone:' + PASSWORD)}"
        behaviours = [fails(403, message=echo), raw(f"<html>{echo}"), says(f"{echo}\nrating=2"), says(f"what? {echo}")]
        return behaviours[len(server.requests) % len(behaviours)]

    server.decide = decide
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"{scheme}someone:{PASSWORD}@127.0.0.1:{server.port}")
    judge = judge_for(openai_base_url="http://judge.invalid/v1", patience=BRIEF)
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(12)]]
    judge.close()
    credentials = base64.b64encode(f"someone:{PASSWORD}".encode()).decode()
    assert {seen.headers["proxy-authorization"] for seen in server.requests} == {f"Basic {credentials}"}
    files = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    for text in [*(json.dumps(asdict(verdict)) for verdict in verdicts), caplog.text, *files]:
        assert PASSWORD not in text
        assert credentials not in text


def test_no_secret_in_the_message_of_a_dead_endpoint(judge_for, item):
    judge = judge_for(openai_base_url=f"http://somebody:{PASSWORD}@127.0.0.1:9/v1?token={TOKEN}")
    with pytest.raises(JudgeUnreachableError) as caught:
        judge.check([(LAVE, item)])
    assert all(secret not in str(caught.value) for secret in SECRETS)


def test_an_address_does_not_show_its_secrets():
    settings = Settings(
        openai_api_key=KEY, openai_base_url=f"https://somebody:{PASSWORD}@example.org/v1/?token={TOKEN}"
    )
    address = address_of(settings, "m")
    assert address.shown == "https://example.org/v1"
    assert all(secret not in repr(address) for secret in SECRETS)


def test_what_a_judge_says_stays_as_it_is():
    secrets = Secrets(["rating", "sk-very-secret-0123456789"])
    said = "100 % \\u0041 &#65; the rating=2"
    assert secrets.hidden_in_reply(said) == said
    assert secrets.hidden("the rating") == "the ***"


@pytest.mark.parametrize("placeholder", ["EMPTY", "ollama", "none", "token-abc123", "abc", ""])
def test_placeholders_are_no_secrets(placeholder):
    said = f"model {placeholder} not found"
    assert Secrets([placeholder]).hidden(said) == said


SHORT = "tiny/key"


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"message": f"bad key {SHORT}"}}),
        json.dumps({"error": {"message": f"bad key {SHORT}"}}).replace("/", "\\/"),
        json.dumps({"error": {"message": "x" * 285 + f" bad key {SHORT}"}}),
        json.dumps({"error": {"message": "x", "code": SHORT, "param": SHORT}}),
        f"<html>{SHORT}",
    ],
)
@pytest.mark.parametrize("status", [401, 200])
def test_short_keys_do_not_come_through_errors(server, judge_for, item, caplog, body, status):
    server.script(raw(body, status))
    judge = judge_for(openai_api_key=SHORT, patience=BRIEF)
    verdict = judge.submit(LAVE, item).verdict()
    assert verdict.outcome == "failed"
    with pytest.raises(JudgeUnreachableError) as caught:
        judge.check([(LAVE, item)])
    assert not any("tiny" in text for text in (verdict.error, str(caught.value), caplog.text))


ARGUMENTS = f"base_url=https://somebody:{PASSWORD}@host/v1?sig={TOKEN},model=m,api_key={KEY},num_concurrent=4"


def test_in_process_judges_show_no_secret_of_their_arguments(tmp_path):
    judge = InProcessJudge(f"local-chat-completions,{ARGUMENTS}", Settings(judge_cache=str(tmp_path / "c")))
    shown = [json.dumps(judge.identity(LAVE).json), repr(judge.__dict__), judge.identity(LAVE).model]
    assert not any(secret in text for secret in [*SECRETS, "somebody"] for text in shown)
    assert judge.identity(LAVE).model == "model=m,api_key=***"
    judge.close()


def test_settings_and_names_of_judges_show_no_secret():
    settings = Settings(judge=f"lm_eval:local-chat-completions,{ARGUMENTS}", openai_api_key=KEY)
    spec = parse_spec(settings.judge)
    shown = [repr(settings), str(spec), repr(spec)]
    for wrong in (f"lm-eval:x,{ARGUMENTS}", f"https://u:{PASSWORD}@host/?sig={TOKEN}", f"none:{ARGUMENTS}"):
        with pytest.raises(SettingsError) as caught:
            parse_spec(wrong)
        shown.append(str(caught.value))
    assert not any(secret in text for secret in SECRETS for text in shown)


def test_whatever_breaks_down_is_free_of_secrets(judge_for, item, monkeypatch, caplog):
    def broken(self, text):
        raise ZeroDivisionError(f"{KEY} {quote(PASSWORD)}")

    monkeypatch.setattr(Secrets, "hidden_in_reply", broken)
    verdict = judge_for(patience=BRIEF).submit(LAVE, item).verdict()
    assert "ZeroDivisionError" in verdict.error
    assert KEY not in verdict.error + caplog.text


def test_what_lm_eval_says_of_a_breakdown_is_free_of_secrets(tmp_path, item, monkeypatch, caplog):
    import lm_eval.models  # noqa: F401
    from lm_eval.api import registry

    class Breaking:
        def __init__(self, **options):
            raise ConnectionError(f"{options} {KEY} sig={TOKEN}")

        create_from_arg_obj = classmethod(lambda cls, options: cls(**options))

    monkeypatch.setattr(registry, "get_model", lambda name: Breaking)
    settings = Settings(judge_cache=str(tmp_path / "c"), openai_api_key="sk-env-key-0123456789")
    judge = InProcessJudge(f"local-chat-completions,{ARGUMENTS}", settings)
    verdicts = [judge.submit(LAVE, item).verdict() for _ in range(2)]
    judge.close()
    for text in [*(verdict.error for verdict in verdicts), caplog.text]:
        assert "ConnectionError" in text
        assert not any(secret in text for secret in SECRETS)


def test_placeholder_keys_do_not_disturb_replies(server, judge_for, item):
    server.script(says("EMPTY 2 rating=2"))
    verdict = judge_for(openai_api_key="2").submit(LAVE, item).verdict()
    assert verdict.completion == "EMPTY 2 rating=2"
