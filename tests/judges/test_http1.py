"""The lean HTTP client: replies in every form that servers send, over plain, secure and proxied connections."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fault_server import completion, raw, says

from culture_tasks.judges.addresses import address_of
from culture_tasks.judges.client import Client
from culture_tasks.judges.completions import Completion
from culture_tasks.judges.http1 import Pool, ProtocolError, ResponseReader
from culture_tasks.judges.replies import Problem
from culture_tasks.settings import Settings

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED += b"4\r\nwiki\r\n5;x=y\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\n"
REPLIES = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", True),
    "empty": (b"HTTP/1.1 500 X\r\ncontent-length:0\r\n\r\n", b"", True),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "chunks": (CHUNKED + b"\r\n", b"wikipedia in\r\n\r\nchunks.", True),
    "chunks with trailers": (CHUNKED + b"X-Sum: 1\r\nY: 2\r\n\r\n", b"wikipedia in\r\n\r\nchunks.", True),
    "interim": (b"HTTP/1.1 103 Hints\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", True),
    "closing": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", b"ok", False),
    "old": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok", False),
    "more than asked for": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!", b"ok", False),
}


@pytest.mark.parametrize(("data", "body", "keeps"), REPLIES.values(), ids=REPLIES.keys())
def test_replies_in_one_piece(data, body, keeps):
    reader = ResponseReader()
    response = reader.feed(data)
    assert response is not None
    assert (response.body, reader.keeps_connection) == (body, keeps)


@given(st.sampled_from([name for name in REPLIES if name != "more than asked for"]), st.integers(1, 7))
def test_replies_in_any_pieces(name, size):
    data, body, _ = REPLIES[name]
    reader = ResponseReader()
    results = [reader.feed(data[start : start + size]) for start in range(0, len(data), size)]
    assert all(result is None for result in results[:-1])
    assert results[-1].body == body


def test_a_body_may_end_with_the_connection():
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert reader.feed(b"lo") is None
    assert reader.end().body == b"hello"
    assert not reader.keeps_connection


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200", REPLIES["length"][0][:-1], CHUNKED])
def test_a_reply_that_ends_early_is_an_error(data):
    reader = ResponseReader()
    assert reader.feed(data) is None
    with pytest.raises(ProtocolError, match="before the reply was complete"):
        reader.end()


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\n",
        b"x" * 100_000,
    ],
)
def test_what_is_no_http_is_an_error(data):
    with pytest.raises(ProtocolError):
        ResponseReader().feed(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data):
    reader = ResponseReader()
    try:
        reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data)
        reader.feed(data)
        reader.end()
    except ProtocolError:
        pass


def test_headers_can_not_be_split():
    with pytest.raises(ValueError, match="line break"):
        Pool("http://x/v1", {"Authorization": "Bearer x\r\nX-Evil: 1"})


def post_all(url, count, **options):
    async def scenario():
        client = Client(address_of(Settings(openai_base_url=url), "m"), 5.0, **options)
        replies = [await client.post(b'{"messages": []}') for _ in range(count)]
        await client.close()
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
