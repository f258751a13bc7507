"""Posts a request to an endpoint, and returns a completion or a problem. Knows nothing of retries."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import NamedTuple, Protocol

import aiohttp

from culture_tasks.judges.addresses import Address
from culture_tasks.judges.completions import Completion
from culture_tasks.judges.http1 import Pool, Response
from culture_tasks.judges.replies import Problem, read_reply
from culture_tasks.judges.retries import asked_to_wait


class Reply(NamedTuple):
    """What one request brought.

    Attributes:
        result: The completion, or what went wrong.
        wait: Seconds for which the endpoint asked to be left alone, or None.
    """

    result: Completion | Problem
    wait: float | None = None


class Transport(Protocol):
    """A way to post to one URL. Redirects are never followed: a key must not travel on."""

    async def post(self, body: bytes) -> Response:
        """Sends a body and reads the reply."""
        ...  # pragma: no cover

    async def close(self) -> None:
        """Closes all connections."""
        ...  # pragma: no cover


class ProxyTransport:
    """Posts through a proxy, by a general HTTP client."""

    def __init__(self, url: str, headers: dict[str, str], proxy: str) -> None:
        self._url = url
        self._proxy = proxy
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def post(self, body: bytes) -> Response:
        """Sends a body and reads the reply."""
        post = self._session.post(self._url, data=body, proxy=self._proxy, allow_redirects=False)
        async with post as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Response(response.status, headers, await response.read())

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()


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
        self._secrets_of_proxy = proxy or ""
        headers = {
            **address.headers,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "culture-tasks",
        }
        self._transport: Transport = (
            ProxyTransport(address.url, headers, proxy) if proxy else Pool(address.url, headers)
        )

    async def post(self, body: bytes) -> Reply:
        """Sends one request and reads the whole reply, within the timeout."""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._transport.post(body)
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
        await self._transport.close()

    def _described(self, error: Exception) -> str:
        text = str(error).replace(self._address.url, self._address.shown)
        if self._secrets_of_proxy:
            text = text.replace(self._secrets_of_proxy, "the proxy")
        return self._address.redacted(f"{type(error).__name__}: {text}" if text else type(error).__name__)
