"""Requests to a judge as the lines of a batch file, and the results that the lines of an endpoint's output files hold.

A line holds exactly the body that is sent to the endpoint when a request is asked for at once. It is named by the
request's key in the verdict cache, so that a reply is recognised anywhere; the tags around the texts, which no key
depends on, are forgotten once the line is sent.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.client import one_line, read_without_secrets
from culture_tasks.judges.endpoint.redaction import Secrets

PATH: Final = "/v1/chat/completions"
MOST_LINES, MOST_BYTES = 50_000, 200_000_000
"""The largest file that an endpoint takes: lines, and bytes (200 MB)."""


def name_of(key: bytes) -> str:
    """Returns the name of a request's line: the first 128 bits of its key in the verdict cache."""
    return key.hex()[:32]


class BatchLine(NamedTuple):
    """A request in a batch.

    Attributes:
        name: Its name in the output.
        make_body: Makes the body, as it is sent without a batch; prompts are long, and lines are many.
    """

    name: str
    make_body: Callable[[], bytes]


def write_files(lines: Iterable[BatchLine], folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Writes lines to as few files as the limits allow, and yields each file with the names of its lines."""
    rest = deque(lines)
    while rest:
        path, names = folder / "batch.jsonl", list[str]()
        with path.open("wb") as file:
            while rest and len(names) < MOST_LINES:
                head = json.dumps({"custom_id": rest[0].name, "method": "POST", "url": PATH})
                line = b'%s, "body": %s}\n' % (head[:-1].encode(), rest[0].make_body())
                if names and file.tell() + len(line) > MOST_BYTES:
                    break
                file.write(line)
                names.append(rest.popleft().name)
        yield path, names


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
            results[name] = _result(parsed, secrets)
        elif parsed is not None:
            damaged += 1
    return results, damaged


def _result(line: Mapping[str, Any], secrets: Secrets) -> Completion | Problem:
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and isinstance(response.get("status_code"), int):
        return read_without_secrets(response["status_code"], {}, json.dumps(response.get("body")), secrets)
    reason = error.get("message") if isinstance(error, dict) else error
    shown = secrets.hidden(one_line(secrets.hidden(str(reason))))
    return Problem(f"no reply in the batch: {shown}", retry=True, unsent=response is None and bool(error))
