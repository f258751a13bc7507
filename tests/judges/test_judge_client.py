"""The client: replies in every form that servers send, over plain, secure and proxied connections."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import threading
import zlib
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from support.fault_server import completion, raw, says

from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.judges.endpoint.client import Client
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

    async def behave(writer, seen):
        for part in parts:
            writer.write(part)
            await writer.drain()
        if closes:
            writer.close()

    return behave


def packed(encoding, body):
    return raw(body, 200, {"Content-Encoding": encoding})


def test_connections_are_kept(server):
    server.decide = lambda seen: says()
    assert all(isinstance(result, Completion) for result in post_all(server.url, 5))
    assert (len(server.requests), server.connections) == (5, 1)
    assert {seen.headers["host"] for seen in server.requests} == {server.url.split("/")[2]}
    assert {seen.headers["accept-encoding"] for seen in server.requests} == {"identity"}


CHUNKS = [b"%x\r\n%s\r\n" % (len(BODY[at : at + 50]), BODY[at : at + 50]) for at in range(0, len(BODY), 50)]
FORMS = {
    "chunks": writes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *CHUNKS, b"0\r\n\r\n"),
    "of unknown length": writes(b"HTTP/1.1 200 OK\r\n\r\n" + BODY, closes=True),
    "gzip": packed("gzip", gzip.compress(BODY)),
    "deflate": packed("deflate", zlib.compress(BODY)),
    "identity": packed("identity", BODY),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_body_in_any_form_is_read(server, form):
    server.script(form, form, says("rating=2"))
    assert [result.text for result in post_all(server.url, 3)] == ["rating=2"] * 3


PROBLEMS = {
    "another protocol": (writes(b"220 mail.example.org ESMTP\r\n\r\n"), "", True),
    "a bomb": (packed("gzip", gzip.compress(b"x" * 50_000_000)), "too long", False),
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
    sent = []

    async def endless(writer, seen):
        writer.write(b"HTTP/1.1 %s\r\n%s\r\n\r\n" % (status, head))
        while len(sent) < 1_000:
            writer.write(b"10000\r\n%s\r\n" % (b"x" * 65536))
            sent.append(65536)
            await writer.drain()

    server.script(endless, says())
    first, second = post_all(server.url, 2)
    assert message in first.message
    assert isinstance(second, Completion)
    assert len(sent) < 1_000


class Judge(BaseHTTPRequestHandler):
    """Grades any request."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *arguments):
        pass


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_secure_connection_needs_a_certificate_that_is_trusted(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("localhost", 0), Judge) as secure:
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
    assert trusted.text == "rating=2"


def test_a_dead_proxy_is_a_problem_without_its_password():
    [problem] = post_all("http://judge.invalid/v1", proxy="http://user:proxy-password-1234@127.0.0.1:9")
    assert problem.retry
    assert "proxy-password" not in problem.message
