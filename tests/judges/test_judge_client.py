"""The client: replies in every form that servers send, what they mean, and which parameters they change."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.fault_server import completion, raw, says

from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.addresses import Secrets, address_of
from culture_tasks.judges.endpoint.client import Client, read_reply, requested_wait
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.settings import Settings

BODY = json.dumps(completion("rating=2")).encode()


def post_all(url, count=1, **options):
    async def scenario():
        asking = Client(address_of(Settings(openai_base_url=url), "m"), 5.0, **options)
        replies = [await asking.post(b'{"messages": []}') for _ in range(count)]
        await asking.close()
        return [reply.result for reply in replies]

    return asyncio.run(scenario())


def writes(*parts, closes=False):
    """Replies with these bytes."""

    async def behave(writer, request):
        for part in parts:
            writer.write(part)
            await writer.drain()
        if closes:
            writer.close()

    return behave


def packed(encoding, body):
    return raw(body, 200, {"Content-Encoding": encoding})


PIECES = [BODY[start : start + 50] for start in range(0, len(BODY), 50)]
CHUNKS = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in PIECES]
FORMS = {
    "chunks": writes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *CHUNKS, b"0\r\n\r\n"),
    "of unknown length": writes(b"HTTP/1.1 200 OK\r\n\r\n" + BODY, closes=True),
    "gzip": packed("gzip", gzip.compress(BODY)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_body_in_any_form_is_read(server, form):
    server.script(form, form, says("rating=2"))
    assert [result.text for result in post_all(server.url, 3)] == ["rating=2"] * 3
    assert {request.headers["accept-encoding"] for request in server.requests} == {"identity"}


PROBLEMS = {
    "another protocol": (writes(b"220 mail.example.org ESMTP\r\n\r\n"), "", True),
    "a bomb": (packed("gzip", gzip.compress(b"x" * 50_000_000)), "too long", True),
    "an unknown encoding": (packed("unknown", b"\x8b\x02\x80"), "", True),
    "not packed": (packed("gzip", b'{"choices": []}'), "gzip", True),
    "no body": (raw(b"", 204), "empty body", True),
    "a redirect": (
        writes(b"HTTP/1.1 307 Go\r\nLocation: /other\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"),
        "redirects elsewhere",
        False,
    ),
}


@pytest.mark.parametrize(("reply", "message", "retry"), PROBLEMS.values(), ids=PROBLEMS)
def test_any_other_reply_is_a_problem_and_the_next_one_is_read(server, reply, message, retry):
    server.script(reply, says())
    problem, result = post_all(server.url, 2)
    assert isinstance(problem, Problem)
    assert message in problem.message
    assert problem.retry == retry
    assert isinstance(result, Completion)
    assert len(server.requests) == 2
    assert "cookie" not in server.requests[1].headers


@pytest.mark.parametrize("head", [b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize(("status", "message"), [(b"200 OK", "the body is too long"), (b"503 Busy", "HTTP 503: ")])
def test_a_body_longer_than_any_completion_is_not_read_to_its_end(server, head, status, message):
    chunks = []

    async def endless(writer, request):
        writer.write(b"HTTP/1.1 %s\r\n%s\r\n\r\n" % (status, head))
        while len(chunks) < 1_000:
            writer.write(b"10000\r\n%s\r\n" % (b"x" * 65536))
            chunks.append(65536)
            await writer.drain()

    server.script(endless, says())
    first, second = post_all(server.url, 2)
    assert message in first.message
    assert isinstance(second, Completion)
    assert len(chunks) < 1_000


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_secure_connection_needs_a_certificate_that_is_trusted(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("localhost", 0), BaseHTTPRequestHandler) as secure:  # which knows no POST
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        thread = threading.Thread(target=secure.serve_forever)
        thread.start()
        url = f"https://localhost:{secure.server_port}/v1"
        [untrusted] = post_all(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        [trusted] = post_all(url)
        secure.shutdown()
        thread.join()
    assert (untrusted.retry, "no trusted connection" in untrusted.message) == (False, True)
    assert trusted.status == 501


def test_a_dead_proxy_is_a_problem_without_its_password():
    [problem] = post_all("http://judge.invalid/v1", proxy="http://user:proxy-password-1234@127.0.0.1:9")
    assert problem.retry
    assert "proxy-password" not in problem.message


NAMES = ["choices", "message", "content", "error", "code", "usage", "text"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=20,
)
ENDINGS = {
    "whole": ["stop", "STOP", "eos", "end_turn", "stop_sequence", None],
    "cut": ["length", "MAX_TOKENS", "max_tokens", "model_length"],
    "refused": ["content_filter", "SAFETY", "RECITATION", "sensitive", "refusal"],
    "asked again": ["error", "abort", "insufficient_system_resource", "tool_calls", "OTHER", "", 7, {"a": 1}],
}
NESTED = "[" * 100_000 + "]" * 100_000
NOW = 1_700_000_000.0


@given(st.sampled_from([200, 302, 400, 429, 500]), JSON.map(json.dumps) | st.text())
@example(200, NESTED)
@example(429, f'{{"error": {{"message": {NESTED}}}}}')
def test_any_body_is_read_without_an_exception(status, text):
    result = read_reply(status, text, Secrets())
    assert isinstance(result, Completion) or "\n" not in result.message


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        *(({"prompt_tokens": count, "completion_tokens": 5}, Usage(0, 5)) for count in (10**30, -1, "7", None, 1.5)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 7}}, Usage(10, 0, 7)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 700}}, Usage(10, 0, 10)),
        ({"prompt_tokens": 10, "prompt_tokens_details": [7]}, Usage(10)),
    ],
)
def test_counts_of_tokens_are_read_and_nonsense_is_none(usage, expected):
    body = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    assert read_reply(200, json.dumps(body), Secrets()).usage == expected


@pytest.mark.parametrize(("ending", "reason"), [(name, reason) for name in ENDINGS for reason in ENDINGS[name]])
def test_a_finish_reason_says_whether_a_reply_is_whole_cut_or_refused_and_any_other_is_asked_again(ending, reason):
    result = read_reply(200, json.dumps(completion("rating=2", reason)), Secrets())
    if isinstance(result, Completion):
        assert ending == ("whole" if result.is_whole else "cut" if result.is_cut_off else "none")
    else:
        assert (result.refused, result.retry) == (ending == "refused", ending == "asked again")


def test_a_status_says_whether_to_ask_again_and_whether_less_often():
    statuses = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
    problems = {status: read_reply(status, "", Secrets()) for status in statuses}
    assert [status for status in statuses if problems[status].retry] == [408, 409, 429, 500, 502, 503, 504, 529]
    assert [status for status in statuses if problems[status].overload] == [429, 503, 504, 529]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_an_endpoint_says_how_long_to_wait(headers, seconds):
    assert requested_wait(429, headers, NOW) == seconds
    assert requested_wait(200, headers, NOW) is None
