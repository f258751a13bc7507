"""Drawing responses at random for people to rate: strata, shares, and an order that a larger draw only extends."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from culture_tasks import __version__
from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.report.loaded_runs import Names, load, newest
from culture_tasks.spotcheck.design import Design, DrawnFrom, DrawnRow, Stratum
from culture_tasks.spotcheck.populations import Population, Response, read_population

LEAST = 5
"""Fewest responses of a stratum that are drawn, where it has so many."""


@dataclass(frozen=True, slots=True)
class Source:
    """The responses of a model's task.

    Attributes:
        model: The model's name.
        task: The task.
        population: Its responses.
    """

    model: str
    task: str
    population: Population


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn, with the responses themselves.

    Attributes:
        design: What was drawn.
        responses: The response of each of its rows, in their order.
    """

    design: Design
    responses: tuple[Response, ...]


def sources_in(named: Sequence[str], tasks: Sequence[str] = ()) -> list[Source]:
    """Finds the responses that a judge grades, of the runs that a report would show.

    Args:
        named: Result files, folders and patterns.
        tasks: Names of tasks or patterns of them; none means all.

    Raises:
        DataError: If there are none, or they can't be read.
        SettingsError: If a name fits no judged task.
    """
    runs = [run for run, reason in newest(load(named, Names()).runs) if reason is None]
    judged = [each for each in runs if each.columns is not None and each.run.settings.judges]
    if not judged:
        raise DataError(
            f"spotcheck: no responses that a judge grades in {', '.join(named)}. Needed are runs of a judged benchmark "
            "with --log_samples and --output_path, judged already or not."
        )
    known = sorted({each.run.task for each in judged})
    for name in tasks:
        if not any(fnmatchcase(task, name) for task in known):
            raise SettingsError(
                f"spotcheck: --tasks {name!r} fits no judged task.{nearest(name, known)} There are {', '.join(known)}."
            )
    wanted = [each for each in judged if not tasks or any(fnmatchcase(each.run.task, name) for name in tasks)]
    sources = [Source(each.run.model, each.run.task, read_population(each.result.samples_file)) for each in wanted]
    return list({source.population.fingerprint: source for source in sources}.values())  # once, whoever judged them


def draw(sources: Sequence[Source], number: int, *, seed: int, now: datetime) -> Drawn:
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
    strata: dict[tuple[int, str], list[_Keyed]] = {}
    for place, source in enumerate(sources):
        for response in source.population.responses:
            keyed = _keyed(source.population, response, seed)
            strata.setdefault((place, response.culture), []).append(keyed)
    shares = _shares({stratum: len(members) for stratum, members in strata.items()}, number)
    chosen = [
        (keyed, place)
        for (place, culture), members in strata.items()
        for keyed in sorted(members, key=lambda each: each.key)[: shares[place, culture]]
    ]
    chosen.sort(key=lambda each: each[0].key)
    rows = tuple(_row(keyed, place) for keyed, place in chosen)
    populations = tuple(_drawn_from(place, source, shares) for place, source in enumerate(sources))
    design = Design(
        culture_tasks=__version__,
        created=now.isoformat(timespec="seconds"),
        seed=seed,
        populations=populations,
        rows=rows,
    )
    return Drawn(design, tuple(keyed.response for keyed, _ in chosen))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A response with its name on the sheet, and the number that says when its turn comes."""

    response: Response
    name: str
    key: str


def _keyed(population: Population, response: Response, seed: int) -> _Keyed:
    place = f"{population.fingerprint}\n{response.item}\n{response.run}"
    name, key = (
        hashlib.sha256(f"{purpose}\n{place}".encode("utf-8", "replace")).hexdigest() for purpose in ("row", f"{seed}")
    )
    return _Keyed(response, name[:12], key)


def _row(keyed: _Keyed, place: int) -> DrawnRow:
    response = keyed.response
    return DrawnRow(
        row=keyed.name,
        population=place,
        culture=response.culture,
        item=response.item,
        run=response.run,
        mark=response.mark,
        lowest=response.rubric.lowest,
        highest=response.rubric.highest,
    )


def _drawn_from(place: int, source: Source, shares: Mapping[tuple[int, str], int]) -> DrawnFrom:
    sizes = Counter(response.culture for response in source.population.responses)
    strata = tuple(Stratum(culture=culture, size=size, drawn=shares[place, culture]) for culture, size in sizes.items())
    return DrawnFrom(model=source.model, task=source.task, fingerprint=source.population.fingerprint, strata=strata)


def _shares(sizes: Mapping[tuple[int, str], int], number: int) -> dict[tuple[int, str], int]:
    """Returns how many of each stratum are drawn; a larger number never takes one away."""
    shares = {stratum: min(LEAST, size) for stratum, size in sizes.items()}
    if number < sum(shares.values()):
        raise SettingsError(
            f"spotcheck: -n {number} is too few for {len(sizes)} strata (cultures of each task of each model), which "
            f"need {LEAST} each. Choose at least -n {sum(shares.values())}, or fewer tasks with --tasks, or name fewer "
            "results."
        )
    turns = [(_turn(sizes[stratum], share), stratum) for stratum, share in shares.items() if share < sizes[stratum]]
    heapq.heapify(turns)
    for _ in range(min(number, sum(sizes.values())) - sum(shares.values())):
        _, stratum = heapq.heappop(turns)
        shares[stratum] += 1
        if shares[stratum] < sizes[stratum]:
            heapq.heappush(turns, (_turn(sizes[stratum], shares[stratum]), stratum))
    return shares


def _turn(size: int, share: int) -> float:
    """Returns when a stratum's turn to get one more comes: the smaller, the earlier."""
    return (2 * share + 1) / size


def in_turn(rows: Iterable[DrawnRow]) -> dict[tuple[int, str], list[str]]:
    """Returns the names of the rows of each stratum, in the order in which they were drawn."""
    strata: dict[tuple[int, str], list[str]] = {}
    for row in rows:
        strata.setdefault((row.population, row.culture), []).append(row.row)
    return strata
