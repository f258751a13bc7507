"""Drawing responses at random for people to rate: strata, shares, and an order that a larger draw only extends."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import NamedTuple

from culture_tasks import __version__
from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.people.populations import Population, Response, read_population
from culture_tasks.people.spotcheck_design import Design, DrawnFrom, DrawnRow, Stratum
from culture_tasks.results.loaded_runs import Names, load, newest

LEAST = 5
"""Fewest responses that are drawn from a stratum, where it has so many."""


class JudgedTask(NamedTuple):
    """The responses of a model to a task."""

    model: str
    task: str
    population: Population


@dataclass(frozen=True, slots=True)
class SheetDraw:
    """What was drawn, with the responses themselves.

    Attributes:
        design: What was drawn.
        responses: The response of each of its rows, in their order.
    """

    design: Design
    responses: tuple[Response, ...]


def judged_tasks(named: Sequence[str], tasks: Sequence[str] = ()) -> list[JudgedTask]:
    """Finds the responses that a judge grades, of the runs that a report would show.

    Args:
        named: Result files, folders and patterns.
        tasks: Names of tasks or patterns of them; none means all.

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
    """Draws responses at random within strata: the cultures of each task of each model.

    Strata get their shares by size (Webster's method), and at least :data:`LEAST` responses each. Within a stratum
    those are drawn that a hash of seed and response puts first, so that a larger draw by the same seed holds the
    smaller one.

    Args:
        sources: What to draw from.
        number: How many responses to draw; all where there are no more.
        seed: Seed of the draw.
        now: When it is made.

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
    chosen = sorted(
        (
            (turn, name, place, response)
            for (place, culture), members in strata.items()
            for turn, name, response in sorted(members, key=itemgetter(0))[: shares[place, culture]]
        ),
        key=itemgetter(0),
    )
    design = Design(
        culture_tasks=__version__,
        created=now.isoformat(timespec="seconds"),
        seed=seed,
        populations=tuple(
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
        ),
        rows=tuple(
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
        ),
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
