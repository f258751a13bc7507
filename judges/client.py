"""The HTTP client: posts a request, and returns a reply or a problem. Knows nothing of retries.

Plain aiohttp, since the client decides how fast a judge can be (see ``benchmarks/judge.py``).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import aiohttp
from yarl import URL

from culture_tasks.judges.addresses import Address
from culture_tasks.judges.completions import Completion
from culture_tasks.judges.replies import Problem, read_reply
from culture_tasks.judges.retries import asked_to_wait

_UNUSED_HEADERS = ("Accept", "Accept-Encoding")


class Reply(NamedTuple):
    """What one request brought.

    Attributes:
        result: The completion, or what went wrong.
        wait: Seconds for which the endpoint asked to be left alone, or None.
    """

    result: Completion | Problem
    wait: float | None = None


class Client:
    """One connection pool to one endpoint. To be made, used and closed inside an event loop."""

    def __init__(self, address: Address, timeout: float, proxy: str | None = None) -> None:
        self._address = address
        self._url = URL(address.url, encoded=True)
        self._timeout = timeout
        self._proxy = proxy
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={**address.headers, "Content-Type": "application/json", "User-Agent": "culture-tasks"},
            skip_auto_headers=_UNUSED_HEADERS,
            timeout=aiohttp.ClientTimeout(total=timeout),
        )

    async def post(self, body: bytes) -> Reply:
        """Sends one request and reads the whole reply, within the timeout."""
        try:
            # No redirects: the key must not travel on, and a POST would turn into a GET.
            async with self._session.post(self._url, data=body, proxy=self._proxy, allow_redirects=False) as response:
                content = await response.read()
        except TimeoutError:
            return Reply(Problem(f"no reply within {self._timeout:g} s", retry=True, overload=True))
        except aiohttp.ClientSSLError as error:
            return Reply(Problem(f"no secure connection: {self._described(error)}", retry=False))
        except (aiohttp.ClientError, OSError) as error:
            return Reply(Problem(f"no reply: {self._described(error)}", retry=True))
        text = self._address.redacted(content.decode("utf-8", "replace"))
        wait = asked_to_wait(response.status, response.headers, time.time())
        return Reply(read_reply(response.status, response.headers, text), wait)

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()

    def _described(self, error: Exception) -> str:
        text = str(error).replace(self._address.url, self._address.shown)
        return self._address.redacted(f"{type(error).__name__}: {text}" if text else type(error).__name__)
