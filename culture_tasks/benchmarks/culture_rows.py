"""What the forms of several benchmarks need: stable names and draws, and questions that are published already."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from culture_tasks.benchmarks.cultures import (
    MODEL,
    Ask,
    Dropped,
    Figure,
    FormOption,
    NothingBuiltError,
    SheetColumn,
    SheetRow,
    State,
    Step,
)
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.data.releases import released_questions
from culture_tasks.data.sources import Source, local_file
from culture_tasks.data.tables import read_file
from culture_tasks.errors import DataUnavailableError
from culture_tasks.metrics.near_duplicates import Alike, near_duplicates
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.text import tokens

if TYPE_CHECKING:
    from culture_tasks.metrics.intervals import Interval


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


def nearest_texts(rows: Iterable[Any], texts: Sequence[str]) -> list[Alike]:
    """Returns the nearest of some texts for each row whose question is much like one."""
    found: dict[int, Alike] = {}
    for each in near_duplicates([row.text for row in rows], texts):
        found.setdefault(each.first, each)
    return list(found.values())


def people_of(state: State, *steps: str) -> set[str]:
    """Returns who has filled in a row of one of some steps."""
    rows = [entries for step in steps for entries in state.entries.get(step, {}).values()]
    return {entry.person for entries in rows for entry in entries if entry.skipped is None and not entry.by_model}


def writers(state: State, name: str) -> int:
    """Returns how many people write a row: one, and none once somebody has skipped it."""
    return 0 if state.skipped("write", name) and not state.of("write", name) else 1


def stale(state: State, names: Mapping[str, Iterable[str]]) -> Iterator[Dropped]:
    """Yields the rows of steps that aren't among those on which the steps are done now."""
    for step, current in names.items():
        for row in sorted(state.entries.get(step, {}).keys() - set(current)):
            yield Dropped(step, row, "its question was changed or left out")


def figure_of(name: str, of: str, number: Interval, *, missing: str = "", **about: Any) -> Figure:
    """Returns a number with its interval as a figure; without a value where it is missing or has none."""
    if missing := missing or (number.reason or "" if math.isnan(number.value) else ""):
        return Figure(name, of, math.nan, number.n, missing=missing, **about)
    return Figure(name, of, number.value, number.n, number.low, number.high, **about)


# What a form says


@cache
def _form_texts(package: str) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return tomllib.loads((resources.files(package) / "culture_texts.toml").read_text("utf-8"))


def options_of(package: str) -> list[FormOption]:
    """Returns the options that ``culture_texts.toml`` of a package describes."""
    return [FormOption(name=name, **fields) for name, fields in _form_texts(package)["options"].items()]


def step_of(
    package: str,
    name: str,
    columns: Sequence[SheetColumn],
    rows: Callable[[State], Sequence[SheetRow]],
    *,
    ask: Ask | None = None,
    language: str = "",
) -> Step:
    """Returns a step that ``culture_texts.toml`` of a package describes; where a model is asked, people don't do it."""
    texts = _form_texts(package)["steps"][name]
    return Step(
        name=name,
        title=texts["title"],
        about=texts["about"].replace("{language}", language),
        who=texts["who"],
        source=texts["source"],
        columns=columns,
        rows=rows,
        ask=ask,
        by_people=ask is None,
    )


# Responses of models


class ModelResponse(NamedTuple):
    """A response of models, by the row in which people rate it; people's own has no model's name."""

    row: str
    text: str
    models: Sequence[str]


def answer_row(name: str, question: str) -> str:
    """Returns the row in which a question is answered; a changed question is another row."""
    return f"{name}.{digest(question)[:6]}"


def responses(state: State, row: str, reference: str = "") -> list[ModelResponse]:
    """Returns the different responses of models in a row, in an order that says nothing of who gave them.

    Where there are some, a reference that isn't empty is one, too.
    """
    texts: dict[str, list[str]] = {}
    for entry in state.by_models("respond", row):
        texts.setdefault(clean(entry.values["response"]), []).append(entry.person.removeprefix(MODEL))
    if texts and reference:
        texts.setdefault(reference, []).append("")
    named = {f"{row}.{digest(text)[:8]}": text for text in texts}
    return [ModelResponse(name, named[name], texts[named[name]]) for name in sorted(named)]


def read_response(reply: str) -> Mapping[str, Any]:
    """Reads a model's response; raises ValueError for an empty one."""
    if not reply.strip():
        raise ValueError("expected an answer, found nothing")
    return {"response": reply.strip()}


def respond_step(
    package: str, prompt: str, *, rows: Callable[[State], Sequence[SheetRow]], decoding: Decoding, shows_images: bool
) -> Step:
    """Returns the step in which models answer questions, shown in a prompt file of a package."""

    def shown(row: SheetRow) -> Prompt:
        text = prompt_file(package, prompt).fill({"question": row.shown["Question"]})
        return Prompt((Picture(), text) if shows_images else (text,))

    columns = (SheetColumn(name="response", title="Response", kind="long_text"),)
    ask = Ask(prompt=shown, read=read_response, decoding=decoding, version=prompt)
    return step_of(package, "respond", columns, rows, ask=ask)


def ratings_of(
    state: State, given: Iterable[ModelResponse], dropped: list[Dropped]
) -> Iterator[tuple[ModelResponse, Sequence[int]]]:
    """Yields the responses that people rated, with their ratings, and adds the others to what is dropped."""
    for response in given:
        if ratings := [entry.values["rating"] for entry in state.of("rate", response.row)]:
            yield response, ratings
        else:
            dropped.append(Dropped("respond", response.row, "nobody has rated the response"))


# What is refused


def negative_options(state: State) -> Iterable[str]:
    """Yields what is wrong with the numbers among a project's options."""
    for name, value in state.config.options.items():
        if isinstance(value, (int, float)) and value < 0:
            yield f"culture.toml, section [options], field {name!r}: found {value}. Expected a number from 0 on."


def check_drafts(unchanged: int, rows: int, options: Mapping[str, Any], dropped: Sequence[Dropped] = ()) -> None:
    """Raises NothingBuiltError where too many rows are a model's drafts that nobody changed."""
    most = options["most_unchanged_drafts"]
    if rows and unchanged / rows > most:
        raise NothingBuiltError(
            f"culture: {unchanged} of {rows} rows are drafts of a model that nobody changed, more than the share of "
            f"{most:g} that the option most_unchanged_drafts allows. Have people rewrite them, or raise the option.",
            dropped,
        )
