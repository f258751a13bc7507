"""Drawing responses at random for people to rate: strata, shares, and an order that a larger draw only extends."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from culture_tasks import __version__
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import NO_GROUP
from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.harness.scoring import item_of
from culture_tasks.judges.rubric.rubrics import Rubric, shortened
from culture_tasks.people.spotcheck_design import Design, DrawnFrom, DrawnRow, Stratum, mark_of
from culture_tasks.results.loaded_runs import Names, load, newest
from culture_tasks.results.logged_samples import JudgedSample, judged_samples

LEAST = 5
"""Fewest responses that are drawn from a stratum, where it has so many."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response to one item; question, references and text are as the judge is shown them, without reasoning.

    Attributes:
        run: Which of several responses to the item, from 0.
        culture: The culture that the item is of, by its benchmark's field of cultures.
        image: Name of the item's image; empty without one.
        scale: The scale that ratings are mapped to.
        judged: The judge's score on that scale; NaN where it gave none.
    """

    item: str
    run: int
    culture: str
    cluster: str
    question: str
    references: tuple[str, ...]
    text: str
    image: str
    rubric: Rubric
    scale: Scale
    judged: float

    @property
    def mark(self) -> str:
        """Hash of its text."""
        return mark_of(self.text)

    def on_scale(self, rating: float) -> float:
        """Returns a rating, such as a person's, on the scale of the scores: end to end, as a judge's is mapped."""
        return _on_scale(rating, self.rubric, self.scale)


class Population(NamedTuple):
    """All responses of one task of one run, in the order of the file, and their hash, whoever judged them."""

    responses: tuple[Response, ...]
    fingerprint: str


class JudgedTask(NamedTuple):
    """The responses of a model to a task."""

    model: str
    task: str
    population: Population


class SheetDraw(NamedTuple):
    """What was drawn, with the response of each of its rows."""

    design: Design
    responses: tuple[Response, ...]


def read_population(samples_file: Path) -> Population:
    """Reads the responses of a task.

    Raises:
        DataError: If the file can't be read, or its samples have no record of a judge.
    """
    try:
        samples = judged_samples(samples_file)
    except OSError as error:
        raise DataError(f"{samples_file}: can't be read ({error.strerror}).") from None
    if not samples:
        raise DataError(f"{samples_file}: no sample that a judge grades. Expected samples of a judged task.")
    responses = tuple(response for sample in samples for response in _responses(sample))
    digest = hashlib.sha256()
    for line in sorted(f"{one.item}\n{one.run}\n{one.culture}\n{one.cluster}\n{one.mark}" for one in responses):
        digest.update(hashlib.sha256(line.encode("utf-8", "replace")).digest())
    return Population(responses, digest.hexdigest())


def _responses(sample: JudgedSample) -> Iterator[Response]:
    record = sample.record
    known = benchmarks().get(record.benchmark)
    culture = record.groups.get(known.report().culture) if known else None
    for number, run in enumerate(record.runs):
        item = item_of(sample.as_logged, run.response)
        rating = run.rating if number in sample.scored else None
        yield Response(
            item=record.item,
            run=number,
            culture=NO_GROUP if culture is None else culture,
            cluster=record.cluster,
            question=shortened(item.question),
            references=tuple(map(shortened, item.references)),
            text=shortened(item.response),
            image=record.image,
            rubric=sample.rubric,
            scale=sample.scale,
            judged=math.nan if rating is None else _on_scale(rating, sample.rubric, sample.scale),
        )


def _on_scale(rating: float, rubric: Rubric, scale: Scale) -> float:
    low, high = scale.low or 0.0, scale.high or 0.0
    return low + (rating - rubric.lowest) * (high - low) / (rubric.highest - rubric.lowest)


def judged_tasks(named: Sequence[str], tasks: Sequence[str] = ()) -> list[JudgedTask]:
    """Finds the responses that a judge grades, of the runs that a report would show; tasks are names or patterns.

    Raises:
        DataError: If there are none, or they can't be read.
        SettingsError: If a name fits no judged task.
    """
    runs = [run for run, reason in newest(load(named, Names()).runs) if reason is None]
    judged = [loaded for loaded in runs if loaded.columns is not None and loaded.run.settings.judges]
    if not judged:
        raise DataError(
            f"spotcheck: no responses that a judge grades in {', '.join(named)}. Expected runs of a judged benchmark "
            "with --log_samples and --output_path, judged already or not."
        )
    known = sorted({loaded.run.task for loaded in judged})
    for name in tasks:
        if not any(fnmatchcase(task, name) for task in known):
            raise SettingsError(
                f"spotcheck: --tasks {name!r} fits no judged task.{nearest(name, known)} There are {', '.join(known)}."
            )
    found = [
        JudgedTask(loaded.run.model, loaded.run.task, read_population(loaded.result.samples_file))
        for loaded in judged
        if not tasks or any(fnmatchcase(loaded.run.task, name) for name in tasks)
    ]
    return list({one.population.fingerprint: one for one in found}.values())  # once, whoever judged them


def draw(sources: Sequence[JudgedTask], number: int, *, seed: int, now: datetime) -> SheetDraw:
    """Draws so many responses at random within strata, or all: the cultures of each task of each model.

    Strata get their shares by size (Webster's method), and at least :data:`LEAST` responses each. Within a stratum
    those are drawn that a hash of seed and response puts first, so that a larger draw by the same seed holds the
    smaller one.

    Raises:
        SettingsError: If there are too few for the strata.
    """
    strata: dict[tuple[int, str], list[tuple[str, str, Response]]] = {}
    for place, source in enumerate(sources):
        for response in source.population.responses:
            identity = f"{source.population.fingerprint}\n{response.item}\n{response.run}"
            turn, name = _sha256(f"{seed}\n{identity}"), _sha256(f"row\n{identity}")[:12]
            strata.setdefault((place, response.culture), []).append((turn, name, response))
    shares = _shares({stratum: len(members) for stratum, members in strata.items()}, number)
    chosen = [
        (turn, name, place, response)
        for (place, culture), members in strata.items()
        for turn, name, response in sorted(members, key=itemgetter(0))[: shares[place, culture]]
    ]
    chosen.sort(key=itemgetter(0))
    populations = [
        DrawnFrom(
            model=source.model,
            task=source.task,
            fingerprint=source.population.fingerprint,
            strata=tuple(
                Stratum(culture=culture, size=len(members), drawn=shares[of, culture])
                for (of, culture), members in strata.items()
                if of == place
            ),
        )
        for place, source in enumerate(sources)
    ]
    rows = [
        DrawnRow(
            row=name,
            population=place,
            culture=response.culture,
            item=response.item,
            run=response.run,
            mark=response.mark,
            lowest=response.rubric.lowest,
            highest=response.rubric.highest,
        )
        for _, name, place, response in chosen
    ]
    design = Design(
        culture_tasks=__version__,
        created=now.isoformat(timespec="seconds"),
        seed=seed,
        populations=tuple(populations),
        rows=tuple(rows),
    )
    return SheetDraw(design, tuple(response for *_, response in chosen))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _shares(sizes: Mapping[tuple[int, str], int], number: int) -> Counter[tuple[int, str]]:
    """Returns how many of each stratum are drawn; a larger number never takes one away."""
    shares = Counter({stratum: min(LEAST, size) for stratum, size in sizes.items()})
    if number < shares.total():
        raise SettingsError(
            f"spotcheck: -n {number} is too few for {len(sizes)} strata (cultures of each task of each model), which "
            f"need {LEAST} each. Choose at least -n {shares.total()}, or fewer tasks with --tasks, or name fewer "
            "results."
        )
    turns = sorted(
        ((2 * share + 1) / size, stratum) for stratum, size in sizes.items() for share in range(shares[stratum], size)
    )
    shares.update(stratum for _, stratum in turns[: number - shares.total()])
    return shares
