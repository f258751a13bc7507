"""Posts a request to an endpoint, and returns a completion or a problem. Knows nothing of retries."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
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
_LONGEST_BODY = 64 * 1024 * 1024


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


class TooLongError(ConnectionError):
    """A reply is longer than any completion."""


class Client:
    """Asks one endpoint. To be made, used and closed inside an event loop.

    Args:
        address: The endpoint.
        timeout: Seconds that one request may take, all in all.
        proxy: Proxy to go through.
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

    async def post(self, body: bytes) -> Reply:
        """Sends one request and reads the whole reply, within the timeout."""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._post(body)
        except TimeoutError:
            return Reply(Problem(f"no reply within {self._timeout:g} s", retry=True, overload=True))
        except (ssl.SSLCertVerificationError, aiohttp.ClientConnectorCertificateError) as error:
            return Reply(Problem(f"no trusted connection: {self._described(error)}", retry=False))
        except (aiohttp.ClientError, OSError) as error:
            return Reply(Problem(f"no reply: {self._described(error)}", retry=True))
        text = self._address.redacted(response.body.decode("utf-8", "replace"))
        wait = asked_to_wait(response.status, response.headers, time.time())
        return Reply(read_reply(response.status, response.headers, text), wait)

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()

    async def _post(self, body: bytes) -> Response:
        """Sends a body and reads the reply. Redirects are never followed: a key must not travel on."""
        post = self._session.post(self._address.url, data=body, proxy=self._proxy, allow_redirects=False)
        async with post as response:
            return Response(response.status, response.headers, await _body(response))

    def _described(self, error: Exception) -> str:
        text = str(error).replace(self._address.url, self._address.shown)
        if self._proxy:
            text = text.replace(self._proxy, "the proxy")
        return self._address.redacted(f"{type(error).__name__}: {text}" if text else type(error).__name__)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    if response.content_length is not None and response.content_length <= _LONGEST_BODY:
        return await response.read()
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > _LONGEST_BODY:
            raise TooLongError("the body is too long")
        parts.append(part)
    return b"".join(parts)


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Makes a socket with keep-alive: a judge may think for minutes, and routers forget a silent connection."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return made
