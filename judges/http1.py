"""HTTP/1.1 as chat endpoints need it: post a body over a kept connection, read one reply.

A general client spends more on a request than everything else that a verdict takes; with hundreds in flight that
decides how fast judging is (``benchmarks/judge.py`` measures both). What isn't needed is not here: proxies, redirects,
cookies, compression and streaming. :mod:`culture_tasks.judges.client` goes through a general client for proxies.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

_LONGEST_HEAD = 64 * 1024
_LONGEST_BODY = 64 * 1024 * 1024
_BODILESS = (204, 304)
_HAPPY_EYEBALLS_DELAY = 0.25


class ProtocolError(ConnectionError):
    """The peer does not speak HTTP/1.1 as it should."""


class Response(NamedTuple):
    """A reply.

    Attributes:
        status: HTTP status.
        headers: Headers with names in lower case; of equal names the last.
        body: The whole body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseReader:
    """Puts one reply together from the bytes as they come, without any input or output."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._http_1_0 = False
        self._chunks: list[bytes] | None = None
        self._length: int | None = None

    @property
    def keeps_connection(self) -> bool:
        """Whether another request may follow on the connection, once the reply is complete."""
        asked_to_close = self._headers.get("connection", "").lower() == "close"
        measured = self._length is not None or self._chunks is not None
        return measured and not self._buffer and not asked_to_close and not self._http_1_0

    def feed(self, data: bytes) -> Response | None:
        """Takes bytes; returns the reply once it is complete.

        Raises:
            ProtocolError: If the bytes are no HTTP/1.1 reply, or too many.
        """
        self._buffer += data
        while not self._status:
            if not self._read_head():
                return None
        if len(self._buffer) > _LONGEST_BODY:
            raise ProtocolError("the body is too long")
        if self._chunks is not None:
            return self._read_chunks(self._chunks)
        if self._length is None or len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        return Response(self._status, self._headers, body)

    def end(self) -> Response:
        """Takes the end of the connection, which ends a body of unknown length.

        Raises:
            ProtocolError: If the reply is not complete.
        """
        if self._status and self._length is None and self._chunks is None:
            return Response(self._status, self._headers, bytes(self._buffer))
        raise ProtocolError("the connection was closed before the reply was complete")

    def _read_head(self) -> bool:
        """Reads the head if it is there; an interim reply (1xx) is skipped."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _LONGEST_HEAD:
                raise ProtocolError("the head is too long")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        version, _, rest = lines[0].partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not rest[:3].isdecimal():
            raise ProtocolError("the reply is not HTTP/1.1")
        status = int(rest[:3])
        if status < 200:
            return True
        fields = (line.partition(":") for line in lines[1:])
        self._headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        self._http_1_0 = version == "HTTP/1.0"
        self._status = status
        self._find_length()
        return True

    def _find_length(self) -> None:
        length = self._headers.get("content-length", "")
        if self._status in _BODILESS:
            self._length = 0
        elif "chunked" in self._headers.get("transfer-encoding", "").lower():
            self._chunks = []
        elif length:
            if not length.isdecimal():
                raise ProtocolError("the length of the body is no number")
            self._length = int(length)

    def _read_chunks(self, chunks: list[bytes]) -> Response | None:
        """Reads chunks as far as they are there; the last is empty, and trailers may follow."""
        while (line_end := self._buffer.find(b"\r\n")) >= 0:
            size = _chunk_size(self._buffer[:line_end])
            end = line_end + 2 + size
            if size == 0:
                trailer_end = self._buffer.find(b"\r\n\r\n", line_end)
                if trailer_end < 0:
                    return None
                del self._buffer[: trailer_end + 4]
                return Response(self._status, self._headers, b"".join(chunks))
            if len(self._buffer) < end + 2:
                return None
            chunks.append(bytes(self._buffer[line_end + 2 : end]))
            del self._buffer[: end + 2]
        return None


def _chunk_size(line: bytearray) -> int:
    try:
        size = int(bytes(line).partition(b";")[0], 16)
    except ValueError:
        size = -1
    if not 0 <= size <= _LONGEST_BODY:
        raise ProtocolError("the size of a chunk is no number")
    return size


class _Connection(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reader = ResponseReader()
        self._reply: asyncio.Future[Response] | None = None
        self.usable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # A judge may think for minutes: without a sign of life, routers forget a silent connection.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def send(self, request: bytes) -> asyncio.Future[Response]:
        """Sends a request; the future gets the reply."""
        assert self._transport is not None
        self._reader = ResponseReader()
        self._reply = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._reply

    def data_received(self, data: bytes) -> None:
        if self._reply is None or self._reply.done():
            self.close()
            return
        try:
            response = self._reader.feed(data)
        except ProtocolError as error:
            self._fail(error)
            return
        if response is not None:
            self.usable = self._reader.keeps_connection
            self._reply.set_result(response)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        if self._reply is None or self._reply.done():
            return
        try:
            if error is not None:
                raise error
            self._reply.set_result(self._reader.end())
        except Exception as reason:  # noqa: BLE001  # whoever waits for the reply gets it
            self._reply.set_exception(reason)

    def close(self) -> None:
        """Closes the connection, whatever is under way."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: ProtocolError) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)
        self.close()


@dataclass(frozen=True, slots=True)
class _Target:
    host: str
    port: int
    tls: ssl.SSLContext | None
    head: bytes


class Pool:
    """Kept connections to one URL. To be used inside an event loop.

    Args:
        url: Where to post.
        headers: Headers of every request.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._target = _target(url, headers)
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()

    async def post(self, body: bytes) -> Response:
        """Sends a body and reads the reply.

        Raises:
            OSError: If the connection fails or ends early; ssl.SSLError if it can't be made secure.
        """
        connection = await self._connection()
        try:
            response = await connection.send(b"%s%d\r\n\r\n%s" % (self._target.head, len(body), body))
        except BaseException:
            # Also when cancelled by a timeout: what comes later belongs to no other request.
            connection.close()
            self._open.discard(connection)
            raise
        if connection.usable:
            self._idle.append(connection)
        else:
            connection.close()
            self._open.discard(connection)
        return response

    async def close(self) -> None:
        """Closes all connections."""
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._idle.clear()
        await asyncio.sleep(0)

    async def _connection(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            self._open.discard(connection)
        target, loop = self._target, asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            _Connection, target.host, target.port, ssl=target.tls, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY
        )
        self._open.add(connection)
        return connection


def _target(url: str, headers: Mapping[str, str]) -> _Target:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"POST {path} HTTP/1.1", f"Host: {parts.netloc}", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a line break in an address or header")
    head = "\r\n".join([*lines, "Content-Length: "]).encode("latin-1")
    tls = ssl.create_default_context() if secure else None
    return _Target(parts.hostname or "", parts.port or (443 if secure else 80), tls, head)
