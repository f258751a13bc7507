"""A chat-completions server on loopback, as lean as asyncio allows, for ``speed/judge.py``.

Every answer is the same verdict, after a fixed time. The server can refuse what comes too often, and be out for a
while. The first line on standard output is the port.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random

_REPLY = json.dumps(
    {
        "id": "chatcmpl-benchmark",
        "object": "chat.completion",
        "model": "judge",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "The candidate names the dish of the reference.\nrating=2"},
            }
        ],
        "usage": {"prompt_tokens": 300, "completion_tokens": 12, "total_tokens": 312},
    }
).encode()
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_REPLY), _REPLY)


class Endpoint:
    """What all connections have in common: how long an answer takes, and when there is none.

    Args:
        latency: Seconds that an answer takes.
        rate: Requests a second that are taken, one at a time; 0 means any.
        tells: Whether a refusal says when to come again (Retry-After, in whole seconds).
        turns_away: Share of requests that are refused by chance, each by itself.
        outage: Seconds after the first request at which an outage (status 503) begins and ends.
    """

    def __init__(
        self,
        *,
        latency: float,
        rate: float,
        tells: bool,
        turns_away: float,
        outage: tuple[float, float],
    ) -> None:
        self._latency, self._rate, self._tells, self._outage = latency, rate, tells, outage
        self._turns_away, self._chance = turns_away, random.Random(0)
        self._first_at: float | None = None
        self._next_at = 0.0

    def begin(self) -> tuple[float, bytes]:
        """Takes a request; returns the seconds until its reply, and the reply."""
        now = asyncio.get_running_loop().time()
        self._first_at = now if self._first_at is None else self._first_at
        if self._outage[0] <= now - self._first_at < self._outage[1]:
            return 0.0, _refusal(b"503 Service Unavailable")
        if self._chance.random() < self._turns_away:
            return 0.0, _refusal(b"429 Too Many Requests")
        if self._rate:
            if now < self._next_at:
                wait = b"Retry-After: %d\r\n" % math.ceil(self._next_at - now) if self._tells else b""
                return 0.0, _refusal(b"429 Too Many Requests", wait)
            self._next_at = now + 1 / self._rate
        return self._latency, _RESPONSE


def _refusal(status: bytes, header: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\n%sContent-Length: 0\r\n\r\n" % (status, header)


class Connection(asyncio.Protocol):
    """Answers each request on a connection; knows only POST with a Content-Length."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers every request that is complete."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = int(self._buffer[:end].lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            latency, reply = self._endpoint.begin()
            if latency:
                asyncio.get_running_loop().call_later(latency, self._answer, reply)
            else:
                self._answer(reply)

    def _answer(self, reply: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(reply)


async def serve(endpoint: Endpoint) -> None:
    """Serves until killed, on a free port that is printed first."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(endpoint), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that a reply takes")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second that are taken")
    parser.add_argument("--tells", action="store_true", help="send Retry-After with a refusal")
    parser.add_argument("--turns-away", type=float, default=0.0, help="share of requests that are refused by chance")
    parser.add_argument("--outage", type=float, nargs=2, default=(0.0, 0.0), help="seconds at which it begins and ends")
    options = parser.parse_args()
    asyncio.run(
        serve(
            Endpoint(
                latency=options.latency,
                rate=options.rate,
                tells=options.tells,
                turns_away=options.turns_away,
                outage=tuple(options.outage),
            )
        )
    )
