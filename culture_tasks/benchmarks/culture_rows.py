"""Parts that the forms of several benchmarks share: stable names and draws, published questions, models' responses."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import unicodedata
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.culture_forms import MODEL, Ask, CultureWork, SheetRow, State
from culture_tasks.benchmarks.interface import Decoding, Picture, Prompt
from culture_tasks.data.releases import released_questions
from culture_tasks.data.sources import Source, local_file
from culture_tasks.data.tables import read_file
from culture_tasks.errors import DataUnavailableError
from culture_tasks.metrics.near_duplicates import Alike, near_duplicates
from culture_tasks.prompt_files import PromptFile
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
    """Reads the one JSON object of a reply, whatever surrounds it; raises ValueError where there is none."""
    try:
        content = json.loads(reply[reply.index("{") : reply.rindex("}") + 1], strict=False)
    except ValueError:
        raise ValueError(f"expected one JSON object, found {reply!r:.80}") from None
    return dict(content)


def published_questions(sources: Iterable[Source], data_folder: Path | None) -> list[str]:
    """Returns the questions of a benchmark's published data, as far as they are in the user's data folder."""
    questions: list[str] = []
    for source in sources:
        with contextlib.suppress(DataUnavailableError):  # another source of the benchmark may be there
            if path := local_file(source, data_folder):
                rows = read_file(path, source.image_column).rows
                questions += [clean(row["question"]) for row in rows if row.get("question")]
    return questions


def nearest_texts(rows: Iterable[Any], texts: Sequence[str]) -> list[Alike]:
    """Returns the nearest of some texts for each row whose question is much like one."""
    matches: dict[int, Alike] = {}
    for match in near_duplicates([row.text for row in rows], texts):
        matches.setdefault(match.first, match)
    return list(matches.values())


def people_of(state: State, *steps: str) -> set[str]:
    """Returns who has filled in a row of one of some steps."""
    rows = [entries for step in steps for entries in state.entries.get(step, {}).values()]
    return {entry.person for entries in rows for entry in entries if entry.skipped is None and not entry.is_by_model}


def resampling_interval(measure: Callable[[NDArray[np.int64]], float], n: int) -> Interval:
    """Returns a measure of some items, by their places, with an interval by resampling the items."""
    from culture_tasks.metrics.intervals import Interval
    from culture_tasks.metrics.resampling import LEAST_DEFINED, replicates

    value, draws = measure(np.arange(n)), replicates(measure, range(n))
    defined = draws[np.isfinite(draws)]
    is_enough = defined.size >= LEAST_DEFINED * draws.size
    low, high = np.quantile(defined, [0.025, 0.975]).tolist() if is_enough else (math.nan, math.nan)
    return Interval(value, low, high, n=n, clusters=n, reason="all labels are alike" if math.isnan(value) else None)


def nominal_alpha(labels: Sequence[Sequence[str]], vocabulary: Iterable[str]) -> Interval:
    """Returns Krippendorff's alpha of the labels that people gave to each item, by resampling the items."""
    from culture_tasks.metrics.rater_agreement import krippendorff_alpha

    codes = {label: float(code) for code, label in enumerate(vocabulary)}
    table = np.array(list(zip_longest(*([codes[label] for label in item] for item in labels), fillvalue=math.nan)))
    return resampling_interval(lambda places: krippendorff_alpha(table[:, places], "nominal").value, len(labels))


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
    for entry in state.model_entries("respond", row):
        texts.setdefault(clean(entry.values["response"]), []).append(entry.person.removeprefix(MODEL))
    if texts and reference:
        texts.setdefault(reference, []).append("")
    names = {f"{row}.{digest(text)[:8]}": text for text in texts}
    return [ModelResponse(name, names[name], texts[names[name]]) for name in sorted(names)]


def ask_by(
    prompt: PromptFile,
    read: Callable[[str], Mapping[str, Any]],
    decoding: Decoding,
    labels: Mapping[str, str],
    *,
    values: Mapping[str, str] = MappingProxyType({}),
    shows_image: bool = False,
) -> Ask:
    """Returns how a model is asked with a prompt file: its slots have values, or what a row shows under a label."""

    def row_prompt(row: SheetRow) -> Prompt:
        text = prompt.fill({**values, **{slot: row.facts.get(label, "") for slot, label in labels.items()}})
        return Prompt((Picture(), text) if shows_image else (text,))

    return Ask(prompt=row_prompt, read=read, decoding=decoding, version=prompt.name)


def read_response(reply: str) -> Mapping[str, Any]:
    """Reads a model's response; raises ValueError for an empty one."""
    if not reply.strip():
        raise ValueError("expected an answer, found nothing")
    return {"response": reply.strip()}


# Entries of a project


class QuestionWork(CultureWork, ABC):
    """The usable entries of a project whose people write questions."""

    def writers(self, name: str) -> int:
        """Returns how many people write a row: one, and none once somebody has skipped it."""
        return 0 if self.state.skips("write", name) and not self.state.entries_of("write", name) else 1

    def without_published(self, step: str, rows: Iterable[Any], published: Iterable[str]) -> list[Any]:
        """Returns the rows whose question isn't published, and drops the others."""
        published_texts, unpublished = set(map(comparable, published)), []
        for row in rows:
            released = hashlib.sha256(row.text.encode()).hexdigest()[:16] in released_questions()
            if released or comparable(row.text) in published_texts:
                self.drop(step, row.name, "the question is one of the published benchmark")
            else:
                unpublished.append(row)
        return unpublished

    def rated(self, responses: Iterable[ModelResponse]) -> Iterator[tuple[ModelResponse, Sequence[int]]]:
        """Yields the responses that people rated, with their ratings, and drops the others."""
        for response in responses:
            if ratings := [entry.values["rating"] for entry in self.state.entries_of("rate", response.row)]:
                yield response, ratings
            else:
                self.drop("respond", response.row, "nobody has rated the response")

    def drop_stale(self, current: Mapping[str, Iterable[str]]) -> None:
        """Drops the rows of steps that aren't among those on which the steps are done now."""
        for step, names in current.items():
            for row in sorted(self.state.entries.get(step, {}).keys() - set(names)):
                self.drop(step, row, "its question was changed or left out")
