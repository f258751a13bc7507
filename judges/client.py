"""Posts a request to an endpoint, and returns a completion or a problem. Knows nothing of retries."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import aiohttp

from culture_tasks.judges.addresses import Address
from culture_tasks.judges.completions import Completion
from culture_tasks.judges.replies import Problem, read_reply
from culture_tasks.judges.retries import asked_to_wait

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "culture-tasks",
}
# A judge that thinks for 128,000 tokens writes half a megabyte, or 1.5 MB where every character is escaped.
_LONGEST_BODY = 2 * 1024 * 1024
# Bodies up to this size are read at once, however many there are: 1,000 in flight hold 64 MiB.
_SMALL_BODY = 64 * 1024
# Of larger ones so many are read at a time: together they hold 32 MiB.
_LARGE_BODIES_AT_A_TIME = 16
# What zlib calls the format of a gzip file, its own, and a bare stream, which some servers send as "deflate".
_GZIP, _ZLIB, _BARE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
_PACKED: Mapping[str, tuple[int, ...]] = {"gzip": (_GZIP,), "x-gzip": (_GZIP,), "deflate": (_ZLIB, _BARE)}


class Reply(NamedTuple):
    """What one request brought.

    Attributes:
        result: The completion, or what went wrong.
        wait: Seconds for which the endpoint asked to be left alone, or None.
    """

    result: Completion | Problem
    wait: float | None = None


class Response(NamedTuple):
    """A reply as it came.

    Attributes:
        status: HTTP status.
        headers: Headers, looked up without regard to case.
        body: The whole body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class UnreadableBodyError(Exception):
    """A body that asking again would not make better: too long, or in an encoding that isn't read."""


class Bodies:
    """Reads bodies. What all of them hold together is bounded, and so is what each unpacks to.

    A body that turns out larger than :data:`_SMALL_BODY` waits for its turn, and meanwhile its sender waits too.

    Attributes:
        held: Bytes of bodies that are being read, without those whose head says that they are small.
        most_held: The most that it ever was.
    """

    def __init__(self) -> None:
        self.held = 0
        self.most_held = 0
        self._turns = asyncio.Semaphore(_LARGE_BODIES_AT_A_TIME)

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """Reads a body, and unpacks it where it is packed though nobody asked for that.

        Of an error's body the beginning is enough.

        Raises:
            UnreadableBodyError: If it is too long, or not to be unpacked.
        """
        encoding, failed = response.headers.get("Content-Encoding", ""), response.status >= 400
        if response.content_length is not None and response.content_length <= _SMALL_BODY:
            return _unpacked(await response.read(), encoding, failed)
        body = bytearray()
        try:
            complete = await self._fill(body, response, _SMALL_BODY)
            if not (complete or failed):
                async with self._turns:
                    if not await self._fill(body, response, _LONGEST_BODY):
                        raise UnreadableBodyError(f"the body is too long: over {_LONGEST_BODY:,} bytes")
            return _unpacked(bytes(body), encoding, failed)
        finally:
            self.held -= len(body)

    async def _fill(self, body: bytearray, response: aiohttp.ClientResponse, size: int) -> bool:
        """Reads on up to this size; returns whether that is all."""
        while part := await response.content.read(size + 1 - len(body)):
            body += part
            self.held += len(part)
            self.most_held = max(self.most_held, self.held)
            if len(body) > size:
                return False
        return True


class Client:
    """Asks one endpoint. To be made, used and closed inside an event loop.

    Args:
        address: The endpoint.
        timeout: Seconds that one request may take, all in all.
        proxy: Proxy to go through.

    Attributes:
        bodies: What reads the replies.
    """

    def __init__(self, address: Address, timeout: float, proxy: str | None = None) -> None:
        self._address = address
        self._timeout = timeout
        self._proxy = proxy
        self._session = aiohttp.ClientSession(
            # Connections are as many as requests are let in at a time: the gate counts them, not the connector.
            connector=aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(), socket_factory=_socket),
            headers={**address.headers, **_HEADERS},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        self.bodies = Bodies()

    async def post(self, body: bytes) -> Reply:
        """Sends one request and reads the whole reply, within the timeout."""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._post(body)
        except TimeoutError:
            return Reply(Problem(f"no reply within {self._timeout:g} s", retry=True, overload=True))
        except (ssl.SSLCertVerificationError, aiohttp.ClientConnectorCertificateError) as error:
            return Reply(Problem(f"no trusted connection: {self._described(error)}", retry=False))
        except UnreadableBodyError as error:
            return Reply(Problem(f"unreadable reply: {error}", retry=False))
        except (aiohttp.ClientError, OSError) as error:
            return Reply(Problem(f"no reply: {self._described(error)}", retry=True))
        wait = asked_to_wait(response.status, response.headers, time.time())
        return Reply(self._read(response), wait)

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()

    async def _post(self, body: bytes) -> Response:
        """Sends a body and reads the reply. Redirects are never followed: a key must not travel on."""
        post = self._session.post(self._address.url, data=body, proxy=self._proxy, allow_redirects=False)
        async with post as response:
            return Response(response.status, response.headers, await self.bodies.read(response))

    def _read(self, response: Response) -> Completion | Problem:
        """Reads a reply; what it means is told from its own words, what is shown of it holds no secret."""
        secrets, text = self._address.secrets, response.body.decode("utf-8", "replace")
        result = read_reply(response.status, response.headers, text)
        if isinstance(result, Completion):
            model = None if result.model is None else secrets.hidden_in_reply(result.model)
            shown = secrets.hidden_in_reply(result.text)
            unchanged = shown == result.text and model == result.model
            return result if unchanged else replace(result, text=shown, model=model)
        # Hidden before the message is made, since that may cut a secret short, and after, since JSON was read then.
        again = read_reply(response.status, response.headers, secrets.hidden(text))
        message = again.message if isinstance(again, Problem) else result.message
        return replace(result, message=secrets.hidden(message))

    def _described(self, error: Exception) -> str:
        text = str(error).replace(self._address.url, self._address.shown)
        if self._proxy:
            text = text.replace(self._proxy, "the proxy")
        return self._address.secrets.hidden(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _unpacked(body: bytes, encoding: str, may_be_cut_off: bool) -> bytes:
    """Undoes a Content-Encoding, without making more than :data:`_LONGEST_BODY` of it."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity") or not body:
        return body
    if encoding not in _PACKED:
        raise UnreadableBodyError(
            f"Content-Encoding {encoding[:40]!r} was not asked for, and is not read (gzip and deflate are). "
            "Have the server or the proxy before it send plain bodies."
        )
    for window_bits in _PACKED[encoding]:
        unpacking = zlib.decompressobj(window_bits)
        try:
            unpacked = unpacking.decompress(body, _LONGEST_BODY + 1)
        except zlib.error:
            continue
        if len(unpacked) > _LONGEST_BODY:
            raise UnreadableBodyError(f"the body is too long: {len(body):,} bytes unpack to over {_LONGEST_BODY:,}")
        if unpacking.eof or may_be_cut_off:
            return unpacked
    raise UnreadableBodyError(f"the body is not what its Content-Encoding says: {encoding}")


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Makes a socket with keep-alive: a judge may think for minutes, and routers forget a silent connection."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return made
