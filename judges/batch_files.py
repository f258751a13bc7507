"""Requests to a judge as the lines of a batch file, and what the lines of an endpoint's output files say of them.

A line holds exactly the body that is sent to the endpoint when a request is asked for at once. It is named by the
request's key in the verdict cache, so that a reply is known again anywhere; the tags around the texts, which no key
depends on, are forgotten once the line is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jsonlines

from culture_tasks.judges.client import one_line, read_without_secrets
from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.redaction import Secrets

PATH: Final = "/v1/chat/completions"
MOST_LINES, MOST_BYTES = 50_000, 200_000_000
"""The largest file that an endpoint takes: lines, and bytes (200 MB)."""

# A reply that is asked for at once has at most 2 MiB (see the client), and a line holds a little more.
_LONGEST_LINE = 4 * 1024 * 1024
_DIGITS = 32


def name_of(key: bytes) -> str:
    """Returns the name of a request's line: the first 128 bits of its key in the verdict cache."""
    return key.hex()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class Line:
    """A request in a batch.

    Attributes:
        name: What the output calls it.
        make_body: Makes the body, as it is sent without a batch; prompts are long, and lines are many.
    """

    name: str
    make_body: Callable[[], bytes]

    def as_json(self) -> dict[str, Any]:
        """Returns the line of the batch file."""
        return {"custom_id": self.name, "method": "POST", "url": PATH, "body": json.loads(self.make_body())}


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A batch file that was written.

    Attributes:
        path: Where it is.
        names: The names of its lines.
    """

    path: Path
    names: tuple[str, ...]


def write_files(
    lines: Iterable[Line], folder: Path, *, most_lines: int = MOST_LINES, most_bytes: int = MOST_BYTES
) -> Iterator[BatchFile]:
    """Writes lines to as few files as the limits allow; each is there while the next one isn't asked for.

    Args:
        lines: The lines, in order.
        folder: Where to write.
        most_lines: Most lines of a file.
        most_bytes: Largest size of a file.
    """
    left, number = iter(lines), 0
    line = next(left, None)
    while line is not None:
        path = folder / f"batch-{number}.jsonl"
        names: list[str] = []
        with path.open("wb") as file, jsonlines.Writer(file, compact=True) as writer:
            while line is not None and len(names) < most_lines:
                content = line.as_json()
                if names and file.tell() + len(json.dumps(content, ensure_ascii=False).encode()) + 1 > most_bytes:
                    break
                writer.write(content)
                names.append(line.name)
                line = next(left, None)
        yield BatchFile(path, tuple(names))
        path.unlink()
        number += 1


@dataclass(slots=True)
class Output:
    """The lines of an output file.

    Attributes:
        damaged: How many lines are not laid out as an endpoint does.
    """

    path: Path
    secrets: Secrets
    damaged: int = 0

    def results(self) -> Iterator[tuple[str, Completion | Problem]]:
        """Yields what the file says of each request, by the name of its line."""
        reader = jsonlines.Reader(self._lines())
        while True:
            try:
                result = _read(reader.read(allow_none=True, skip_empty=True), self.secrets)
            except EOFError:
                return
            except (jsonlines.InvalidLineError, RecursionError):
                result = None
            if result is None:
                self.damaged += 1
            else:
                yield result

    def _lines(self) -> Iterator[str]:
        """Yields the lines; one that is too long is counted as damaged, and never held as a whole."""
        # Only a line feed ends a line: other separators may stand inside of a reply.
        with self.path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            while line := file.readline(_LONGEST_LINE):
                if line.endswith("\n") or len(line) < _LONGEST_LINE:
                    yield line
                    continue
                self.damaged += 1
                while line and not line.endswith("\n"):
                    line = file.readline(_LONGEST_LINE)


def _read(line: object, secrets: Secrets) -> tuple[str, Completion | Problem] | None:
    """Returns the name of a line and what it says; None where it isn't laid out as an endpoint does."""
    if isinstance(line, dict) and isinstance(name := line.get("custom_id"), str):
        return name, _result(line, secrets)
    return None


def _result(line: Mapping[str, Any], secrets: Secrets) -> Completion | Problem:
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and isinstance(response.get("status_code"), int):
        return read_without_secrets(response["status_code"], {}, json.dumps(response.get("body")), secrets)
    said = error.get("message") if isinstance(error, dict) else error
    shown = secrets.hidden(one_line(secrets.hidden(str(said))))
    return Problem(f"no reply in the batch: {shown}", retry=True, unsent=response is None and bool(error))
