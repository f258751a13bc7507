"""The batches of an OpenAI-compatible endpoint, and the lines of their files.

Only the call that begins a batch costs money, so each attempt first looks whether an earlier one was carried out.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

import requests

from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.addresses import Address, Secrets
from culture_tasks.judges.endpoint.client import one_line, read_reply
from culture_tasks.settings import Settings

T = TypeVar("T")

PATH: Final = "/v1/chat/completions"
# The largest file that an endpoint takes: lines, and bytes (200 MB).
MOST_LINES, MOST_BYTES = 50_000, 200_000_000
_PAGES_TO_SEARCH, _BATCHES_PER_PAGE = 10, 100
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_FIRST_REDIRECT, _NOT_FOUND = 300, 404
# Errors of a reply that isn't laid out as OpenAI's are.
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


def batch_files(lines: Iterable[tuple[str, bytes]]) -> Iterator[tuple[bytes, list[str]]]:
    """Yields named bodies as the contents of files, as few as the limits allow, each with the names of its lines."""
    file, names = BytesIO(), list[str]()
    for name, body in lines:
        head = json.dumps({"custom_id": name, "method": "POST", "url": PATH})
        line = b'%s, "body": %s}\n' % (head[:-1].encode(), body)
        if names and (len(names) == MOST_LINES or file.tell() + len(line) > MOST_BYTES):
            yield file.getvalue(), names
            file, names = BytesIO(), []
        file.write(line)
        names.append(name)
    if names:
        yield file.getvalue(), names


def read_results(content: bytes, secrets: Secrets) -> dict[str, Completion | Problem]:
    """Returns the results of a file by the names of their lines; a line that can't be read is left out."""
    results: dict[str, Completion | Problem] = {}
    for text in BytesIO(content):  # only a line feed ends a line: other separators may be part of a reply
        try:
            line = json.loads(text)
            name, response, error = str(line["custom_id"]), line.get("response"), line.get("error")
            if response:
                results[name] = read_reply(int(response["status_code"]), {}, json.dumps(response.get("body")), secrets)
            else:
                reason = error.get("message") if isinstance(error, dict) else error
                results[name] = Problem(f"no reply in the batch: {one_line(secrets.hidden(str(reason)))}", retry=True)
        except _UNREADABLE:
            continue
    return results


class Status(NamedTuple):
    """The progress of a batch."""

    name: str  # the endpoint's name of its state
    answered: int  # how many requests were answered, and are paid for
    failed: int  # how many weren't
    requests: int  # how many it has
    outputs: list[str]  # the files with results, as far as there are any
    error: str  # why all of it failed; empty where it didn't

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.name in ("completed", "failed", "expired", "cancelled")


class _FailedError(Exception):
    """A request that brought no reply of use."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class BatchEndpoint:
    """Files and batches of one endpoint; a failed call is repeated for as many seconds as its patience has."""

    def __init__(self, address: Address, settings: Settings) -> None:
        if address.url_variable == "AZURE_OPENAI_ENDPOINT":
            raise SettingsError(
                "rejudge: Azure offers batches at its OpenAI-compatible address. Unset AZURE_OPENAI_ENDPOINT, and set "
                "OPENAI_BASE_URL=https://<resource>.openai.azure.com/openai/v1 and OPENAI_API_KEY."
            )
        logging.getLogger("urllib3").setLevel(logging.WARNING)  # it notes each URL, which may hold a key
        self._address = address
        self._patience, self._timeout = settings.judge_patience, max(settings.judge_timeout, 60.0)
        self._session = requests.Session()
        self._session.auth = lambda request: request  # no password from a .netrc takes the place of the key
        self._session.verify = os.environ.get("SSL_CERT_FILE") or True  # as for verdicts that are asked at once
        self._session.headers.update({"User-Agent": "culture-tasks", **address.headers})
        self._session.params = dict(parse_qsl(urlsplit(address.url).query))

    def upload(self, content: bytes) -> str:
        """Uploads a batch file and returns its name at the endpoint."""
        parts = {"purpose": (None, "batch"), "file": ("batch.jsonl", content)}
        return self._patiently(
            "upload a batch file", lambda: _id_of(self._request("POST", "files", files=parts).json())
        )

    def begin(self, file: str) -> str:
        """Begins the batch of an uploaded file and returns its name; one that was begun already is found."""
        body = {
            "input_file_id": file,
            "endpoint": PATH,
            "completion_window": "24h",
            "metadata": {"by": "culture-tasks"},
        }
        return self._patiently(
            "begin a batch", lambda: self._find(file) or _id_of(self._request("POST", "batches", json=body).json())
        )

    def status(self, batch: str) -> Status:
        """Returns the progress of a batch."""

        def look() -> Status:
            reply = self._request("GET", f"batches/{batch}").json()
            counts, errors = reply.get("request_counts") or {}, (reply.get("errors") or {}).get("data") or []
            answered, failed, total = (int(counts.get(name) or 0) for name in ("completed", "failed", "total"))
            outputs = [str(reply[name]) for name in ("error_file_id", "output_file_id") if reply.get(name)]
            error = self._address.secrets.hidden("; ".join(str(error.get("message")) for error in errors))
            return Status(one_line(str(reply["status"])), answered, failed, total, outputs, one_line(error))

        return self._patiently("look at a batch", look)

    def content(self, file: str) -> bytes:
        """Returns the content of a file at the endpoint; empty where the file isn't there any more."""

        def fetch() -> bytes:
            try:
                return self._request("GET", f"files/{file}/content").content
            except _FailedError as error:
                if error.problem.status == _NOT_FOUND:
                    return b""
                raise

        return self._patiently("download a file of results", fetch)

    def close(self) -> None:
        """Closes all connections."""
        self._session.close()

    def _find(self, file: str) -> str | None:
        """Returns the batch of an uploaded file, or None where none was begun."""
        query: dict[str, Any] = {"limit": _BATCHES_PER_PAGE}
        for _ in range(_PAGES_TO_SEARCH):
            page = self._request("GET", "batches", params=query).json()
            if found := [_id_of(batch) for batch in page["data"] if batch["input_file_id"] == file]:
                return found[0]
            if not page.get("has_more"):
                break
            query["after"] = _id_of(page["data"][-1])
        return None

    def _request(self, method: str, path: str, **content: Any) -> requests.Response:
        """Sends one request; credentials must not follow a redirect."""
        url, hidden = f"{self._address.name}/{path}", self._address.secrets.hidden
        try:
            reply = self._session.request(method, url, timeout=self._timeout, allow_redirects=False, **content)
        except requests.RequestException as error:
            raise _FailedError(Problem(f"{type(error).__name__}: {one_line(hidden(str(error)))}", retry=True)) from None
        if reply.status_code >= _FIRST_REDIRECT:
            problem = read_reply(reply.status_code, reply.headers, reply.text, self._address.secrets)
            assert isinstance(problem, Problem)
            raise _FailedError(problem)
        return reply

    def _patiently(self, doing: str, work: Callable[[], T]) -> T:
        """Repeats a call until it works or patience ends."""
        until, wait = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            try:
                return work()
            except _FailedError as error:
                problem = error.problem
            except _UNREADABLE as error:
                problem = Problem(f"the reply isn't laid out as OpenAI's ({type(error).__name__})")
            if not problem.retry or time.monotonic() + wait > until:
                raise JudgeUnreachableError(
                    f"judge at {self._address.name}: can't {doing}: {problem.message}. Nothing is lost: the same "
                    "command goes on where this one stopped."
                )
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_PAUSE)


def _id_of(content: Any) -> str:
    if not isinstance(content["id"], str):
        raise TypeError
    return content["id"]
