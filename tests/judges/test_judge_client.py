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

import pytest
from support.fault_server import completion, raw, says

from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.judges.endpoint.client import Client, read_reply
from culture_tasks.settings import Settings


def post_all(url, count, **options):
    async def scenario():
        asking = Client(address_of(Settings(openai_base_url=url), "m"), 5.0, **options)
        replies = [await asking.post(b'{"messages": []}') for _ in range(count)]
        await asking.close()
        return [reply.result for reply in replies]

    return asyncio.run(scenario())


def test_connections_are_kept(server):
    server.decide = lambda seen: says()
    assert all(isinstance(result, Completion) for result in post_all(server.url, 5))
    assert (len(server.requests), server.connections) == (5, 1)
    assert {seen.headers["host"] for seen in server.requests} == {server.url.split("/")[2]}


def test_chunks_and_unknown_lengths_from_a_server(server):
    body = json.dumps(completion("rating=2")).encode()

    async def chunked(writer, seen):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(body), 50):
            part = body[start : start + 50]
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def until_closed(writer, seen):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    server.script(chunked, chunked, until_closed, says())
    assert [result.text[-8:] for result in post_all(server.url, 4)] == ["rating=2"] * 4


def test_nonsense_from_a_server(server):
    async def nonsense(writer, seen):
        writer.write(b"220 mail.example.org ESMTP\r\n\r\n")

    server.script(nonsense, says())
    first, second = post_all(server.url, 2)
    assert isinstance(first, Problem)
    assert first.retry
    assert isinstance(second, Completion)


@pytest.mark.parametrize("head", [b"Content-Length: 1000000000", b"Transfer-Encoding: chunked", b"Connection: close"])
def test_a_body_longer_than_any_completion_is_not_read_to_its_end(server, head):
    sent = []

    async def endless(writer, seen):
        writer.write(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % head)
        while len(sent) < 1_000:
            writer.write(b"10000\r\n%s\r\n" % (b"x" * 65536))
            sent.append(65536)
            await writer.drain()

    server.script(endless, says())
    first, second = post_all(server.url, 2)
    assert "the body is too long" in first.message
    assert not first.retry
    assert isinstance(second, Completion)
    assert len(sent) < 1_000


def test_of_an_error_the_beginning_is_enough(server):
    async def endless(writer, seen):
        writer.write(b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n<html>")
        while True:
            writer.write(b"Try again later. " * 1000)
            await writer.drain()

    server.script(endless, says())
    first, second = post_all(server.url, 2)
    assert first.retry
    assert "HTTP 503: <html>Try again later." in first.message
    assert isinstance(second, Completion)


def packed(encoding, body):
    return raw(body, 200, {"Content-Encoding": encoding})


def test_a_body_that_is_packed_unasked_is_read(server):
    body = json.dumps(completion("rating=2")).encode()
    server.script(packed("gzip", gzip.compress(body)), packed("deflate", zlib.compress(body)), packed("identity", body))
    assert [result.text for result in post_all(server.url, 3)] == ["rating=2"] * 3
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("encoding", "body", "message"),
    [
        ("gzip", gzip.compress(b"x" * 50_000_000), "too long"),
        ("unknown", b"\x8b\x02\x80", ""),
        ("gzip", b'{"choices": []}', "gzip"),
    ],
    ids=["bomb", "unknown", "not packed"],
)
def test_a_packed_body_that_cannot_be_read_is_a_problem(server, encoding, body, message):
    server.script(packed(encoding, body))
    (result,) = post_all(server.url, 1)
    assert isinstance(result, Problem)
    assert message in result.message


NESTED = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("status", [200, 429])
@pytest.mark.parametrize("text", [NESTED, f'{{"error": {{"message": {NESTED}}}}}'])
def test_deeply_nested_json_is_a_problem(status, text):
    assert isinstance(read_reply(status, {}, text), Problem)


def test_redirects_and_cookies_are_not_followed(server):
    async def elsewhere(writer, seen):
        head = b"HTTP/1.1 307 Go\r\nLocation: %s/other\r\nSet-Cookie: a=b\r\n" % server.url.encode()
        writer.write(head + b"Content-Length: 0\r\n\r\n")

    server.script(elsewhere, says())
    first, second = post_all(server.url, 2)
    assert "redirects elsewhere" in first.message
    assert isinstance(second, Completion)
    assert len(server.requests) == 2
    assert "cookie" not in server.requests[1].headers


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def serve(handle, context=None):
    """Serves connections in a thread; returns the port and a function that stops."""
    ready, box = threading.Event(), {}

    async def main():
        box["stop"], box["loop"] = asyncio.Event(), asyncio.get_running_loop()
        listening = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        box["port"] = listening.sockets[0].getsockname()[1]
        ready.set()
        await box["stop"].wait()
        listening.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    ready.wait()

    def stop():
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join()

    return box["port"], stop


async def answer(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            body = json.dumps(completion("rating=2", model=head.split(b" ")[1].decode())).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    except (asyncio.IncompleteReadError, OSError):
        writer.transport.abort()


def test_secure_connections(certificate, monkeypatch):
    context, file = certificate
    port, stop = serve(answer, context)
    try:
        (untrusted,) = post_all(f"https://localhost:{port}/v1", 1)
        assert isinstance(untrusted, Problem)
        assert not untrusted.retry
        assert "no trusted connection" in untrusted.message
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        results = post_all(f"https://localhost:{port}/v1", 3)
        assert [result.text for result in results] == ["rating=2"] * 3
    finally:
        stop()


def test_a_proxy_is_gone_through():
    port, stop = serve(answer)
    try:
        proxy = f"http://user:proxy-password-1234@127.0.0.1:{port}"
        (result,) = post_all("http://judge.invalid/v1", 1, proxy=proxy)
    finally:
        stop()
    assert (result.text, result.model) == ("rating=2", "http://judge.invalid/v1/chat/completions")


def test_a_dead_proxy_is_a_problem_without_its_password():
    (result,) = post_all("http://judge.invalid/v1", 1, proxy="http://user:proxy-password-1234@127.0.0.1:9")
    assert result.retry
    assert "proxy-password" not in result.message


def test_a_reply_without_a_body(server):
    server.script(raw(b"", 204))
    (result,) = post_all(server.url, 1)
    assert "empty body" in result.message
