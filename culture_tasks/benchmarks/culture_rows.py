"""What the forms of several benchmarks need: stable names and draws, and questions that are published already."""

from __future__ import annotations

import contextlib
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from culture_tasks.benchmarks.cultures import MODEL, Dropped, State
from culture_tasks.data.releases import released_questions
from culture_tasks.data.sources import Source, local_file
from culture_tasks.data.tables import read_file
from culture_tasks.errors import DataError, DataUnavailableError
from culture_tasks.metrics.near_duplicates import Alike, near_duplicates
from culture_tasks.text import tokens


class HasText(Protocol):
    """Something that was written, with its name in a step."""

    @property
    def name(self) -> str:
        """Name of its row."""

    @property
    def text(self) -> str:
        """The question."""


def digest(*parts: object) -> str:
    """Returns twelve hexadecimal digits that are the same for the same parts on every machine."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "replace")).hexdigest()[:12]


def random_order(names: Iterable[str], seed: int, draw: str) -> list[str]:
    """Returns names in a random order in which further names change nothing but their own places."""
    return sorted(names, key=lambda name: digest(seed, draw, name))


def clean(value: object) -> str:
    """Returns a text as it is stored: without white space around it, its characters composed (NFC)."""
    return unicodedata.normalize("NFC", str(value or "")).strip()


def comparable(text: str) -> str:
    """Returns a text without what two wordings of one question may differ in: case, width and punctuation."""
    return " ".join(tokens(text)) or clean(text)


def json_object(reply: str) -> dict[str, Any]:
    """Reads the one JSON object of a reply, whatever stands around it; raises ValueError where there is none."""
    try:
        found = json.loads(reply[reply.index("{") : reply.rindex("}") + 1], strict=False)
    except ValueError:
        raise ValueError(f"expected one JSON object, found {reply!r:.80}") from None
    return dict(found)


def published_questions(sources: Iterable[Source], data_folder: Path | None) -> list[str]:
    """Returns the questions of a benchmark's published data, as far as they are in the user's data folder."""
    questions: list[str] = []
    for source in sources:
        with contextlib.suppress(DataUnavailableError):  # another source of the benchmark may be there
            if path := local_file(source, data_folder):
                rows = read_file(path, source.image_column).rows
                questions += [clean(row["question"]) for row in rows if row.get("question")]
    return questions


def without_published(step: str, rows: Iterable[Any], published: Sequence[str], dropped: list[Dropped]) -> list[Any]:
    """Returns the rows whose question isn't published; the others are added to what is dropped."""
    known = set(map(comparable, published))
    kept = []
    for row in rows:
        released = hashlib.sha256(row.text.encode()).hexdigest()[:16] in released_questions()
        if released or comparable(row.text) in known:
            dropped.append(Dropped(step, row.name, "the question is one of the published benchmark"))
        else:
            kept.append(row)
    return kept


def nearest_texts(first: Sequence[HasText], second: Sequence[str]) -> list[Alike]:
    """Returns the nearest of some texts for each question that is much like one."""
    found: dict[int, Alike] = {}
    for each in near_duplicates([row.text for row in first], second):
        found.setdefault(each.first, each)
    return list(found.values())


class Response(NamedTuple):
    """A response of models, by the row in which people rate it; people's own has no model's name."""

    row: str
    text: str
    models: Sequence[str]


def answer_row(name: str, question: str) -> str:
    """Returns the row in which a question is answered; a changed question is another row."""
    return f"{name}.{digest(question)[:6]}"


def responses(state: State, row: str, reference: str = "") -> list[Response]:
    """Returns the different responses of models in a row, in an order that says nothing of who gave them.

    Where there are some, a reference that isn't empty is one, too.
    """
    texts: dict[str, list[str]] = {}
    for entry in state.by_models("respond", row):
        texts.setdefault(clean(entry.values["response"]), []).append(entry.person.removeprefix(MODEL))
    if texts and reference:
        texts.setdefault(reference, []).append("")
    named = {f"{row}.{digest(text)[:8]}": text for text in texts}
    return [Response(name, named[name], texts[named[name]]) for name in sorted(named)]


def read_response(reply: str) -> Mapping[str, Any]:
    """Reads a model's response; raises ValueError for an empty one."""
    if not reply.strip():
        raise ValueError("expected an answer, found nothing")
    return {"response": reply.strip()}


def negative_options(state: State) -> Iterable[str]:
    """Yields what is wrong with the numbers among a project's options."""
    for name, value in state.config.options.items():
        if isinstance(value, (int, float)) and value < 0:
            yield f"culture.toml, section [options], field {name!r}: found {value}. Expected a number from 0 on."


def check_drafts(unchanged: int, rows: int, options: Mapping[str, Any]) -> None:
    """Raises DataError where too many rows are a model's drafts that nobody changed."""
    most = options["most_unchanged_drafts"]
    if rows and unchanged / rows > most:
        raise DataError(
            f"culture: {unchanged} of {rows} rows are drafts of a model that nobody changed, more than the share of "
            f"{most:g} that the option most_unchanged_drafts allows. Have people rewrite them, or raise the option."
        )
