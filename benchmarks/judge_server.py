"""A chat-completions server of fixed latency on loopback, as lean as asyncio allows, for ``benchmarks/judge.py``.

Every reply is the same verdict. The first line on standard output is the port.
"""

from __future__ import annotations

import argparse
import asyncio
import json

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


class FixedLatency(asyncio.Protocol):
    """Answers each request on a connection after the same time; knows only POST with a Content-Length."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
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
            if self._latency:
                asyncio.get_running_loop().call_later(self._latency, self._answer)
            else:
                self._answer()

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_RESPONSE)


async def serve(latency: float) -> None:
    """Serves until killed, on a free port that is printed first."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: FixedLatency(latency), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that a reply takes")
    asyncio.run(serve(parser.parse_args().latency))
