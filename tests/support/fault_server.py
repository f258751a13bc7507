"""A real HTTP server on loopback that replies as a chat-completions endpoint does on its bad days."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

GOOD = "It names the dish of the reference.\nrating=2"


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    method: str = "POST"
    content: bytes = b""

    @property
    def text(self) -> str:
        """All that the messages say."""
        return "\n".join(message["content"] for message in self.body["messages"])


Behaviour = Callable[[asyncio.StreamWriter, Request], Awaitable[None]]


def completion(
    text: str | None, finish_reason: str = "stop", model: str = "judge", usage: Any = None, **message: Any
) -> dict[str, Any]:
    """The JSON of a chat completion."""
    reply = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": finish_reason, "message": reply}
    usage = {"prompt_tokens": 300, "completion_tokens": 5, "total_tokens": 305} | (usage or {})
    return {"model": model, "choices": [choice], "usage": usage}


def raw(body: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Behaviour:
    """Replies with this body."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]

    async def behave(writer: asyncio.StreamWriter, request: Request) -> None:
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        await writer.drain()

    return behave


def says(text: str | None = GOOD, finish_reason: str = "stop", model: str = "judge", **message: Any) -> Behaviour:
    """Replies with a chat completion."""
    return raw(json.dumps(completion(text, finish_reason, model, **message)))


def fails(status: int, headers: Mapping[str, str] | None = None, **error: Any) -> Behaviour:
    """Replies with an error in OpenAI's form."""
    return raw(json.dumps({"error": {"message": "something is wrong", **error}}), status, headers)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def resets(writer: asyncio.StreamWriter, request: Request) -> None:
    """Resets the connection before a reply."""
    _reset(writer)


async def resets_midway(writer: asyncio.StreamWriter, request: Request) -> None:
    """Resets the connection in the middle of a body."""
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": [')
    await writer.drain()
    await asyncio.sleep(0.01)
    _reset(writer)


async def hangs(writer: asyncio.StreamWriter, request: Request) -> None:
    """Never replies."""
    await asyncio.sleep(3600)


async def drips(writer: asyncio.StreamWriter, request: Request) -> None:
    """Sends a valid reply, one byte at a time, for longer than anybody waits."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(100_000):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


def late(seconds: float, then: Behaviour) -> Behaviour:
    """Behaves after a while."""

    async def behave(writer: asyncio.StreamWriter, request: Request) -> None:
        await asyncio.sleep(seconds)
        await then(writer, request)

    return behave


class FaultServer:
    """Serves in a separate thread, by a script or by a rule."""

    def __init__(self) -> None:
        self.requests: list[Request] = []  # all that arrived whole, in order
        self.decide: Callable[[Request], Behaviour] = lambda request: says()  # the rule: what to do with a request
        self.connections = 0  # how many were made
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *behaviours: Behaviour) -> None:
        """Behaves so, one request after the other; the last goes on for ever."""
        remaining = list(behaviours)
        self.decide = lambda request: remaining.pop(0) if len(remaining) > 1 else remaining[0]

    def close(self) -> None:
        """Stops serving."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections += 1
        self._connections.add(task)
        try:
            while (request := await _read(reader)) is not None and not writer.is_closing():
                self.requests.append(request)
                await self.decide(request)(writer, request)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
    except (asyncio.IncompleteReadError, OSError):
        return None
    is_json = headers.get("content-type", "application/json").startswith("application/json")
    method, path, _ = lines[0].split(" ")
    return Request(path, headers, json.loads(content) if content and is_json else {}, method, content)
