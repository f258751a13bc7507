"""Keys and headers never reach a log, an error message, the cache, a verdict or an identity."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict

import pytest
from support.fault_server import fails, hangs, raw, resets, says
from support.judging import KEY

from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.addresses import address_of
from culture_tasks.judges.rubrics import RUBRICS
from culture_tasks.settings import Settings

LAVE = RUBRICS["lave"]
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
        says(f"Bearer {KEY} {PASSWORD} {TOKEN} {SECRETS[-1]} rating=2"),
        says(None, refusal=f"no, {KEY}"),
        says(f"what? {KEY}"),
        resets,
        hangs,
        raw("", 307, {"Location": f"http://{KEY}@127.0.0.1:9/"}),
    ]
    server.decide = lambda seen: faults[int(seen.text.split("What is dish ")[1].split("?")[0]) % len(faults)]
    url = server.url.replace("127", f"somebody:{PASSWORD}@127") + f"?token={TOKEN}" if with_password else server.url
    judge = judge_for(openai_base_url=url, judge_timeout=0.3)
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


def test_placeholder_keys_do_not_disturb_replies(server, judge_for, item):
    server.script(says("EMPTY 2 rating=2"))
    verdict = judge_for(openai_api_key="2").submit(LAVE, item).verdict()
    assert verdict.completion == "EMPTY 2 rating=2"
