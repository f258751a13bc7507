"""Posts a request to an endpoint, once, and reads the reply: a completion, or a problem with its meaning."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from culture_tasks.judges.completions import CUT, REFUSED, WHOLE, Completion, Problem
from culture_tasks.judges.endpoint.addresses import Address, Secrets
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.text import storable

TIMED_OUT = "timed_out"  # code of the problem of a request that got no reply in time
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "culture-tasks"}
# A judge that thinks for 128,000 tokens writes half a megabyte, or 1.5 MB where every character is escaped.
_LONGEST_BODY = 2 * 1024 * 1024
# A body that is announced to be no longer is read at once, and unpacks to a thousand times as much at most.
_SMALL_BODY = 16 * 1024
_LONGEST_MESSAGE = 300
_TOO_MANY_TOKENS = 2**53  # some JSON readers and databases lose digits of larger integers
_PASSING = (408, 409, 429)
_OVERLOAD = (429, 503, 504, 529)
# Codes of a content filter: OpenAI's and Azure's, LiteLLM's, DashScope's, and DeepSeek's words for one.
_FILTER_CODES = (
    *("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"),
    *("ContentPolicyViolationError", "data_inspection_failed", "DataInspectionFailed"),
)
_FILTER_WORDS = re.compile(
    r"Content Exists Risk|ContentPolicyViolationError|data_inspection_failed|DataInspectionFailed"
)
# Seconds or milliseconds, without a sign or an exponent.
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Reply(NamedTuple):
    """What one request brought."""

    result: Completion | Problem
    wait: float | None = None  # seconds for which the endpoint asked to be left alone, or None


class Client:
    """Asks one endpoint; each request has ``timeout`` seconds. To be made, used and closed inside an event loop."""

    def __init__(self, address: Address, timeout: float, proxy: str | None = None) -> None:
        self._address = address
        self._url = URL(address.url)
        self._timeout = timeout
        self._proxy = proxy
        self._session = aiohttp.ClientSession(
            # Connections are as many as requests are let in at a time: the gate counts them, not the connector.
            connector=aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(), socket_factory=_socket),
            headers={**address.headers, **_HEADERS},
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def post(self, body: bytes) -> Reply:
        """Sends one request and reads the whole reply, within the timeout; a key must not follow a redirect."""
        try:
            post = self._session.post(self._url, data=body, proxy=self._proxy, allow_redirects=False)
            async with post as response:
                content = await _body(response)
        except TimeoutError:
            return Reply(Problem(f"no reply within {self._timeout:g} s", retry=True, overload=True, code=TIMED_OUT))
        except (ssl.SSLCertVerificationError, aiohttp.ClientConnectorCertificateError) as error:
            return Reply(Problem(f"no trusted connection: {self._description(error)}", retry=False))
        except (aiohttp.ClientError, OSError) as error:
            return Reply(Problem(f"no reply: {self._description(error)}", retry=True))
        if len(content) > _LONGEST_BODY and response.status < 400:
            message = f"unreadable reply: the body is too long: over {_LONGEST_BODY:,} bytes"
            return Reply(Problem(message, retry=True, status=response.status))
        text = content.decode("utf-8", "replace")
        wait = requested_wait(response.status, response.headers, time.time())
        return Reply(read_reply(response.status, text, self._address.secrets), wait)

    async def close(self) -> None:
        """Closes all connections."""
        await self._session.close()

    def _description(self, error: Exception) -> str:
        text = str(error).replace(self._address.url, self._address.name)
        if self._proxy:
            text = text.replace(self._proxy, "the proxy")
        return self._address.secrets.hidden(f"{type(error).__name__}: {text}" if text else type(error).__name__)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Reads a body, unpacked where a server packed it unasked, and no further than a completion can reach."""
    if response.content_length is not None and response.content_length <= _SMALL_BODY:
        return await response.read()  # the usual case, without an exception for each reply
    try:
        return await response.content.readexactly(_LONGEST_BODY + 1)
    except asyncio.IncompleteReadError as whole:
        return whole.partial


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Makes a socket with keep-alive: a judge may think for minutes, and routers forget a silent connection."""
    family, kind, protocol, _, _ = address
    connection = socket.socket(family, kind, protocol)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def read_reply(status: int, text: str, secrets: Secrets) -> Completion | Problem:
    """Reads a reply from its status and its body; what is shown of it holds no secret."""
    if 300 <= status < 400:
        message = "the endpoint redirects elsewhere, and credentials don't follow: correct its URL"
        return Problem(message, retry=False, status=status)
    if status >= 400:
        return _read_error(status, text, secrets)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        excerpt = one_line(secrets.hidden(text)) or "an empty body"
        return Problem(f"the reply is not JSON: {excerpt}", True, status=status)
    try:
        choice = content["choices"][0]
        message = choice["message"]
        finish_reason, refusal, answer = choice.get("finish_reason"), message.get("refusal"), message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError):
        excerpt = one_line(secrets.hidden(str(content)))
        return Problem(f"the reply has no choices with a message: {excerpt}", True, status=status)
    reason = "stop" if finish_reason is None else str(finish_reason).lower()
    if refusal or reason in REFUSED:
        declined = refusal if isinstance(refusal, str) else "stopped by the content filter"
        excerpt = one_line(secrets.hidden(declined))
        return Problem(f"the judge declined: {excerpt}", False, refused=True, status=status)
    if reason not in WHOLE and reason not in CUT:  # such as "abort" and "error": the text may end anywhere
        ending = one_line(secrets.hidden(str(finish_reason)))
        return Problem(f"the endpoint broke the reply off (finish reason {ending!r})", True, status=status)
    if isinstance(answer, list):  # some endpoints send the text in parts
        parts = [part.get("text") for part in answer if isinstance(part, dict)]
        answer = "".join(part for part in parts if isinstance(part, str))
    model, usage = content.get("model"), content.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens = _count(usage, "prompt_tokens")
    thoughts = _count(usage.get("completion_tokens_details"), "reasoning_tokens")
    cached = min(_count(usage.get("prompt_tokens_details"), "cached_tokens"), tokens)
    return Completion(
        secrets.hidden_in_reply(storable(answer)) if isinstance(answer, str) else "",
        finish_reason if isinstance(finish_reason, str) else None,
        secrets.hidden_in_reply(storable(model)) if isinstance(model, str) else None,
        Usage(tokens, _count(usage, "completion_tokens"), cached),
        thought=thoughts > 0 or bool(message.get("reasoning_content") or message.get("reasoning")),
    )


def _count(usage: Any, name: str) -> int:
    """Returns a number of tokens; 0 where there is no sensible one."""
    number = usage.get(name) if isinstance(usage, dict) else None
    return number if isinstance(number, int) and 0 <= number < _TOO_MANY_TOKENS else 0


def _read_error(status: int, text: str, secrets: Secrets) -> Problem:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = {}
    # The error is under this key, or the body itself; servers differ.
    error = content.get("error", content) if isinstance(content, dict) else content
    error = error if isinstance(error, dict) else {"message": str(error)}
    inner = error.get("innererror")
    names = (error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None)
    codes = [None if name is None else str(name) for name in names]
    param = error.get("param")
    is_filter = any(code in _FILTER_CODES for code in codes) or _FILTER_WORDS.search(str(error.get("message")))
    refused = status in (400, 403) and bool(is_filter)
    hopeless = refused or "insufficient_quota" in codes
    explanation = one_line(secrets.hidden(str(error.get("message") or text)))
    return Problem(
        f"HTTP {status} {_MEANINGS.get(status, '')}".rstrip() + (f": {explanation}" if explanation else ""),
        retry=(status in _PASSING or status >= 500) and not hopeless,
        overload=status in _OVERLOAD and not hopeless,
        refused=refused,
        status=status,
        code=codes[0],
        param=None if param is None else str(param),
    )


_MEANINGS: Mapping[int, str] = {
    400: "bad request",
    401: "wrong or missing key",
    403: "not allowed",
    404: "unknown model or URL",
    429: "rate limit",
}


def one_line(text: str) -> str:
    """Returns a text as an error shows it: one line, and not a long one."""
    line = " ".join(storable(text).split())
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"


def requested_wait(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Reads for how many seconds an endpoint wants to be left alone after an error; now is in seconds since 1970."""
    if status < 400:
        return None
    if _NUMBER.fullmatch(milliseconds := headers.get("retry-after-ms", "")):
        return float(milliseconds) / 1000
    text = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
