"""The batches of an OpenAI-compatible endpoint, and the lines of their files.

Only the call that begins a batch costs money, so each attempt first looks whether an earlier one was carried out.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.addresses import Address, Secrets
from culture_tasks.judges.endpoint.client import one_line, read_reply
from culture_tasks.settings import Settings

T = TypeVar("T")

PATH: Final = "/v1/chat/completions"
# The largest file that an endpoint takes: lines, and bytes (200 MB).
MOST_LINES, MOST_BYTES = 50_000, 200_000_000
_BATCHES_TO_SEARCH = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
# Loggers that note each request with its URL, which may hold a key.
_CHATTY = ("httpx", "httpx2", "httpcore", "httpcore2", "openai")
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


def batch_files(lines: Iterable[tuple[str, bytes]]) -> Iterator[tuple[bytes, list[str]]]:
    """Yields named bodies as contents of files, within an endpoint's limits, each with the names of its lines."""
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
                results[name] = read_reply(int(response["status_code"]), json.dumps(response.get("body")), secrets)
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
    outputs: list[str]  # the files with results, as far as there are any
    error: str  # why all of it failed; empty where it didn't

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.name in ("completed", "failed", "expired", "cancelled")


class BatchEndpoint:
    """Files and batches of one endpoint; a failed call is repeated for as many seconds as its patience has."""

    def __init__(self, address: Address, settings: Settings) -> None:
        if address.url_variable == "AZURE_OPENAI_ENDPOINT":
            raise SettingsError(
                "rejudge: Azure offers batches at its OpenAI-compatible address. Unset AZURE_OPENAI_ENDPOINT, and set "
                "OPENAI_BASE_URL=https://<resource>.openai.azure.com/openai/v1 and OPENAI_API_KEY."
            )
        import openai

        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
        self._address, self._patience = address, settings.judge_patience
        self._client = openai.OpenAI(
            base_url=address.name,
            api_key="none",  # the headers below have the key, or whatever else authorises
            default_headers={"User-Agent": "culture-tasks", **address.headers},
            default_query=dict(parse_qsl(urlsplit(address.url).query)),
            timeout=max(settings.judge_timeout, 60.0),
            max_retries=0,
            # Credentials must not follow a redirect.
            http_client=openai.DefaultHttpxClient(follow_redirects=False, proxy=settings.proxy_for(address.url)),
        )

    def upload(self, content: bytes) -> str:
        """Uploads a batch file and returns its name at the endpoint."""
        create, file = self._client.files.create, ("batch.jsonl", content)
        return self._patiently("upload a batch file", lambda: _id_of(create(file=file, purpose="batch")))

    def begin(self, file: str) -> str:
        """Begins the batch of an uploaded file and returns its name; one that was begun already is found."""
        batches, metadata = self._client.batches, {"by": "culture-tasks"}

        def begin_or_find() -> str:
            for batch in islice(batches.list(limit=100), _BATCHES_TO_SEARCH):
                if batch.input_file_id == file:
                    return _id_of(batch)
            return _id_of(batches.create(input_file_id=file, endpoint=PATH, completion_window="24h", metadata=metadata))

        return self._patiently("begin a batch", begin_or_find)

    def status(self, batch: str) -> Status:
        """Returns the progress of a batch."""

        def look() -> Status:
            reply: Any = self._client.batches.retrieve(batch)
            counts, errors = reply.request_counts, getattr(reply.errors, "data", None) or []
            answered, failed = (getattr(counts, name, None) or 0 for name in ("completed", "failed"))
            outputs = [str(file) for file in (reply.error_file_id, reply.output_file_id) if file]
            error = self._address.secrets.hidden("; ".join(str(error.message) for error in errors))
            return Status(one_line(str(reply.status)), answered, failed, outputs, one_line(error))

        return self._patiently("look at a batch", look)

    def content(self, file: str) -> bytes:
        """Returns the content of a file at the endpoint; empty where the file isn't there any more."""
        import openai

        def fetch() -> bytes:
            try:
                return self._client.files.content(file).content
            except openai.NotFoundError:
                return b""

        return self._patiently("download a file of results", fetch)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _patiently(self, doing: str, work: Callable[[], T]) -> T:
        """Repeats a call until it works or patience ends; what is shown of an error holds no secret."""
        import openai

        until, wait, secrets = time.monotonic() + self._patience, _FIRST_PAUSE, self._address.secrets
        while True:
            try:
                return work()
            except openai.APIStatusError as error:
                reply = read_reply(error.response.status_code, error.response.text, secrets)
                problem = reply if isinstance(reply, Problem) else Problem("an empty reply", retry=True)
            except openai.APIConnectionError as error:
                text = secrets.hidden(f"{error} ({type(error.__cause__).__name__}: {error.__cause__})")
                problem = Problem(one_line(text), retry=True)
            except (openai.OpenAIError, *_UNREADABLE) as error:
                problem = Problem(f"the reply isn't laid out as OpenAI's ({type(error).__name__})")
            if not problem.retry or time.monotonic() + wait > until:
                raise JudgeUnreachableError(
                    f"judge at {self._address.name}: can't {doing}: {problem.message}. Nothing is lost: the same "
                    "command goes on where this one stopped."
                )
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_PAUSE)


def _id_of(reply: Any) -> str:
    if not isinstance(reply.id, str) or not reply.id:
        raise TypeError
    return reply.id
