"""The batches of an OpenAI-compatible endpoint, through the ``openai`` package, and the lines of their files.

Only the call that begins a batch costs money. It is never repeated blindly: where its reply is lost, the batches are
searched for the one of that file.

A line holds exactly the body that is sent to the endpoint when a request is asked for at once. It is named by the
request's key in the verdict cache, so that a reply is recognised anywhere; the tags around the texts, which no key
depends on, are forgotten once the line is sent.
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
_NOT_OFFERED = 501
# Statuses that leave it open whether a request was carried out.
_UNDECIDED = (408, 409)
# Errors of reading a reply that isn't laid out as OpenAI's are.
_UNREADABLE = (AttributeError, TypeError, ValueError)
_NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached")


_CONTRADICTION = Problem("lines of the batch's results contradict each other", retry=True, status=200)


def name_of(key: bytes) -> str:
    """Returns the name of a request's line: the first 128 bits of its key in the verdict cache."""
    return key.hex()[:32]


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


def read_results(content: bytes, secrets: Secrets) -> tuple[dict[str, Completion | Problem], int]:
    """Returns an output file's results by the names of their lines, and how many lines can't be read."""
    results: dict[str, Completion | Problem] = {}
    damaged = 0
    for line in BytesIO(content):  # only a line feed ends a line: other separators may be part of a reply
        try:
            parsed = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            parsed = line
        if isinstance(parsed, dict) and isinstance(name := parsed.get("custom_id"), str):
            response, error = parsed.get("response"), parsed.get("error")
            if isinstance(response, dict) and isinstance(status := response.get("status_code"), int):
                result = read_reply(status, {}, json.dumps(response.get("body")), secrets)
                results[name] = agreed(results.get(name), result)
                continue
            reason = error.get("message") if isinstance(error, dict) else error
            message = secrets.hidden(one_line(secrets.hidden(str(reason))))
            is_unsent = response is None and bool(error)
            problem = Problem(f"no reply in the batch: {message}", retry=True, unsent=is_unsent)
            results[name] = agreed(results.get(name), problem)
        elif parsed is not None:
            damaged += 1
    return results, damaged


def agreed(before: Completion | Problem | None, result: Completion | Problem) -> Completion | Problem:
    """Returns the result of a request that a batch has this line and others for: a problem if they contradict."""
    texts = {line.text if isinstance(line, Completion) else None for line in (before, result)}
    return result if before is None or (before is not _CONTRADICTION and len(texts) == 1) else _CONTRADICTION


class RefusedError(JudgeUnreachableError):
    """The endpoint's answer is a clear no."""


class Status(NamedTuple):
    """The progress of a batch."""

    name: str  # the endpoint's name of its state
    done: int  # how many requests have a result
    answered: int  # how many of these were answered, and are paid for
    requests: int  # how many it has
    outputs: tuple[str, ...]  # the files with results, as far as there are any
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
        self.patience = settings.judge_patience
        self._address = address
        parts = urlsplit(address.url)
        self._client = openai.OpenAI(
            base_url=address.name,
            api_key="none",  # the headers below have the key, or whatever else authorises
            default_headers={"User-Agent": "culture-tasks", **address.headers},
            default_query=dict(parse_qsl(parts.query)),
            timeout=max(settings.judge_timeout, 60.0),
            max_retries=0,
            # A key must not travel on.
            http_client=openai.DefaultHttpxClient(follow_redirects=False, proxy=settings.proxy_for(address.url)),
        )

    def upload(self, content: bytes) -> str:
        """Uploads a batch file and returns its name at the endpoint; repeated if need be, since it costs nothing."""
        create, file = self._client.files.create, ("batch.jsonl", content)
        return self._patiently("upload a batch file", lambda: _name_of(create(file=file, purpose="batch")))

    def begin(self, file: str) -> str:
        """Begins the batch of an uploaded file and returns its name; one that was begun already is found.

        Raises:
            RefusedError: If the endpoint refuses it.
            JudgeUnreachableError: If there is no answer, and the batch may have begun.
        """
        attempts = 0

        def begin_or_find() -> str:
            nonlocal attempts
            attempts += 1
            if attempts > 1 and (batch := self.find(file)) is not None:
                return batch
            metadata = {"by": "culture-tasks"}
            create = self._client.batches.create
            return _name_of(create(input_file_id=file, endpoint=PATH, completion_window="24h", metadata=metadata))

        return self._patiently("begin a batch", begin_or_find)

    def find(self, file: str) -> str | None:
        """Returns the batch of an uploaded file, or None where none was begun."""

        def look() -> str | None:
            batches = islice(self._client.batches.list(limit=100), _BATCHES_TO_SEARCH)
            return next((_name_of(batch) for batch in batches if batch.input_file_id == file), None)

        return self._patiently(f"list batches to see whether there is one of file {file}", look)

    def status(self, batch: str) -> Status:
        """Returns the progress of a batch."""

        def look() -> Status:
            reply: Any = self._client.batches.retrieve(batch)
            counts, errors = reply.request_counts, getattr(reply.errors, "data", None) or []
            messages = [str(error.message) for error in errors if error.message]
            return Status(
                name=one_line(str(reply.status)),
                done=(counts.completed or 0) + (counts.failed or 0) if counts else 0,
                answered=counts.completed or 0 if counts else 0,
                requests=counts.total or 0 if counts else 0,
                outputs=tuple(str(file) for file in (reply.output_file_id, reply.error_file_id) if file),
                error=one_line(self._address.secrets.hidden("; ".join(messages[:3]))),
            )

        return self._patiently("look at a batch", look)

    def content(self, file: str) -> bytes | None:
        """Returns the content of a file at the endpoint; None where it isn't there any more."""
        import openai

        def fetch() -> bytes | None:
            try:
                return self._client.files.content(file).content
            except openai.NotFoundError:
                return None

        return self._patiently("download a file of results", fetch)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _patiently(self, doing: str, work: Callable[[], T]) -> T:
        """Repeats a call until it works or patience ends."""
        import openai

        passing = (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError)
        until = time.monotonic() + self.patience
        wait = _FIRST_PAUSE
        while True:
            try:
                return work()
            except passing as error:
                is_hopeless = (
                    getattr(error, "status_code", None) == _NOT_OFFERED or getattr(error, "code", None) in _NO_MONEY
                )
                if is_hopeless or time.monotonic() + wait > until:
                    raise self._unreachable(doing, error) from None
            except (openai.OpenAIError, *_UNREADABLE) as error:
                raise self._unreachable(doing, error) from None
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_PAUSE)

    def _unreachable(self, doing: str, error: Exception) -> JudgeUnreachableError:
        status = getattr(error, "status_code", None)
        is_no = status is not None and 400 <= status < 500 and status not in _UNDECIDED
        body, cause = getattr(error, "body", None), error.__cause__
        words = (body.get("message") if isinstance(body, dict) else body) or error
        details = f" ({type(cause).__name__}: {cause})" if cause and not status else ""
        reason = one_line(self._address.secrets.hidden(f"{f'HTTP {status}: ' if status else ''}{words}{details}"))
        return (RefusedError if is_no else JudgeUnreachableError)(
            f"judge at {self._address.name}: can't {doing}: {reason}. Nothing is lost: the same command goes on where "
            "this one stopped."
        )


def _name_of(reply: Any) -> str:
    if not isinstance(reply.id, str) or not reply.id:
        raise ValueError("the reply names nothing")
    return reply.id
