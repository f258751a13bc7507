"""Drawing responses at random for people to rate, in an order that a larger draw only extends, and their sheets."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from culture_tasks import __version__
from culture_tasks.benchmarks.interface import JudgedScore, Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import NO_GROUP
from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.harness.records import item_of, on_scale
from culture_tasks.judges.rubric.rubrics import Rubric, shortened
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.pages.markup import as_markup, asset, content_security_policy, templates_of
from culture_tasks.pages.thumbnails import Thumbnails
from culture_tasks.people.rated_responses import UNKNOWN, language_of_script
from culture_tasks.people.spotcheck_design import COLUMNS, Design, DesignPopulation, DesignRow, DesignStratum, mark_of
from culture_tasks.plain_files import write_whole
from culture_tasks.results.loading import Names, load, newest
from culture_tasks.results.logged_samples import JudgedSample, judged_samples
from culture_tasks.results.runs import Run
from culture_tasks.results.samples import samples_of
from culture_tasks.text import failure_in
from culture_tasks.text_tables import write_csv

LEAST = 5  # responses that are drawn from a stratum, where it has so many
_SIDE = 900  # pixels of the longer side of an image on the page


@dataclass(frozen=True, slots=True)
class SheetResponse:
    """One response to one item; question, references and text are as the judge is shown them, without reasoning."""

    item: str
    run: int  # which of several responses to the item, from 0
    culture: str
    cluster: str
    question: str
    references: tuple[str, ...]
    text: str
    image: str  # its name, or empty
    rubric: Rubric
    scale: Scale
    judged: float  # the judge's score on the scale, NaN where it gave none

    @property
    def mark(self) -> str:
        """Hash of its text."""
        return mark_of(self.text)


class Population(NamedTuple):
    """All responses of a model to a task, in the order of the file, and their hash, the same for all judges."""

    model: str
    task: str
    responses: tuple[SheetResponse, ...]
    fingerprint: str


def read_population(result: Run) -> Population:
    """Reads the responses of a task."""
    samples_file = result.samples_file
    try:
        samples = judged_samples(samples_of(samples_file, result.expected))
    except OSError as error:
        raise DataError(f"{samples_file}: can't be read ({error.strerror}).") from None
    if not samples:
        raise DataError(f"{samples_file}: no sample that a judge grades. Expected samples of a judged task.")
    responses = tuple(response for sample in samples for response in _responses(sample))
    digest = hashlib.sha256()
    for line in sorted(
        f"{response.item}\n{response.run}\n{response.culture}\n{response.cluster}\n{response.mark}"
        for response in responses
    ):
        digest.update(hashlib.sha256(line.encode("utf-8", "replace")).digest())
    return Population(result.model, result.task, responses, digest.hexdigest())


def _responses(sample: JudgedSample) -> Iterator[SheetResponse]:
    record = sample.record
    benchmark = benchmarks().get(record.benchmark)
    culture = record.groups.get(benchmark.report().culture) if benchmark else None
    for number, run in enumerate(record.runs):
        if failure_in(run.response):
            continue
        item = item_of(sample.as_logged, run.response)
        rating = run.rating if number in sample.scored else None
        yield SheetResponse(
            item=record.item,
            run=number,
            culture=NO_GROUP if culture is None else culture,
            cluster=record.cluster,
            question=shortened(item.question),
            references=tuple(map(shortened, item.references)),
            text=shortened(item.response),
            image=record.image,
            rubric=sample.rubric,
            scale=record.scale,
            judged=math.nan if rating is None else on_scale(rating, sample.rubric, record.scale),
        )


def judged_tasks(paths: Sequence[str], tasks: Sequence[str] = ()) -> list[Population]:
    """Finds the responses that a judge grades, of the runs that a report would show; tasks are names or patterns.

    Where a judge graded a sample of a run's responses, it is that sample.
    """
    loading = load(paths, Names())
    runs = [run for run, reason in newest(loading.runs) if reason is None]
    samples = {(run.task, run.graded_from) for run in runs if run.subset is not None}
    runs = [
        run
        for run in runs
        if run.subset is not None or not samples & {(run.task, run.path), (run.task, run.graded_from or run.path)}
    ]
    # Of a judged task's samples of which no line can be used, reading them says why.
    judged_runs = [
        run
        for run in runs
        if run.settings.judges
        or (not run.has_samples and isinstance(run.metric, JudgedScore) and run.samples_file.is_file())
    ]
    if not judged_runs:
        found = "; ".join(f"{problem.path}: {problem.kind}, {problem.detail}" for problem in loading.problems[:3])
        raise DataError(
            f"spotcheck: no responses that a judge grades in {', '.join(paths)}{found and f' ({found})'}. "
            "Expected runs of a judged benchmark with --log_samples and --output_path, judged already or not."
        )
    names = sorted({run.task for run in judged_runs})
    for name in tasks:
        if not any(fnmatchcase(task, name) for task in names):
            raise SettingsError(
                f"spotcheck: --tasks {name!r} fits no judged task.{nearest(name, names)} There are {', '.join(names)}."
            )
    populations = [
        read_population(run) for run in judged_runs if not tasks or any(fnmatchcase(run.task, name) for name in tasks)
    ]
    return list({population.fingerprint: population for population in populations}.values())  # once for all judges


class _Drawn(NamedTuple):
    turn: str  # a hash, by which the order is random
    name: str  # of the row
    population: int
    response: SheetResponse


def draw(
    populations: Sequence[Population], number: int, *, seed: int, now: datetime
) -> tuple[Design, list[SheetResponse]]:
    """Draws so many responses at random within strata, or all: the cultures of each task of each model.

    Strata get their shares by size (Webster's method), and at least :data:`LEAST` responses each. Within a stratum the
    order is that of a hash of seed, task and item, so that a larger draw by the same seed holds the smaller one, and
    models are rated on the same items, also where one is drawn later.

    Returns the design, and the response of each of its rows.
    """
    strata: dict[tuple[int, str], list[_Drawn]] = {}
    for place, population in enumerate(populations):
        for response in population.responses:
            item = f"{response.item}\n{response.run}"
            turn = _sha256(f"{seed}\n{population.task}\n{item}")
            name = "r" + _sha256(f"row\n{population.fingerprint}\n{item}")[:12]  # or Excel reads a number
            strata.setdefault((place, response.culture), []).append(_Drawn(turn, name, place, response))
    shares = _shares({stratum: len(members) for stratum, members in strata.items()}, number)
    picks: list[_Drawn] = []
    design_strata: dict[int, list[DesignStratum]] = {}
    for (place, culture), members in strata.items():
        drawn = shares[place, culture]
        picks += sorted(members, key=attrgetter("turn"))[:drawn]
        stratum = DesignStratum(culture=culture, size=len(members), drawn=drawn)
        design_strata.setdefault(place, []).append(stratum)
    picks.sort(key=attrgetter("turn", "name"))
    sources = [
        DesignPopulation(
            model=population.model,
            task=population.task,
            fingerprint=population.fingerprint,
            strata=tuple(design_strata.get(place, ())),
        )
        for place, population in enumerate(populations)
    ]
    rows = tuple(map(_design_row, picks))
    created = now.isoformat(timespec="seconds")
    design = Design(culture_tasks=__version__, created=created, seed=seed, populations=tuple(sources), rows=rows)
    return design, [pick.response for pick in picks]


def _design_row(pick: _Drawn) -> DesignRow:
    response = pick.response
    return DesignRow(
        row=pick.name,
        population=pick.population,
        culture=response.culture,
        item=response.item,
        run=response.run,
        mark=response.mark,
        lowest=response.rubric.lowest,
        highest=response.rubric.highest,
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _shares(sizes: Mapping[tuple[int, str], int], number: int) -> Counter[tuple[int, str]]:
    """Returns how many of each stratum are drawn; a larger number never takes one away."""
    shares = Counter({stratum: min(LEAST, size) for stratum, size in sizes.items()})
    if number < shares.total():
        raise SettingsError(
            f"spotcheck: -n {number} is too few for {len(sizes)} strata (cultures of each task of each model), "
            f"which need {LEAST} each, or all of fewer. Choose at least -n {shares.total()}, or fewer tasks with "
            "--tasks, or name fewer results."
        )
    turns = sorted(
        ((2 * share + 1) / size, stratum) for stratum, size in sizes.items() for share in range(shares[stratum], size)
    )
    shares.update(stratum for _, stratum in turns[: number - shares.total()])
    return shares


# The sheets that raters fill in: a CSV file, and a page without a network; both blind to judge and model

# A response that a spreadsheet may turn into a number, a date or a truth value, unless an apostrophe is before it.
_LIKE_A_NUMBER = re.compile(r"(?=.*\d)[^'\n]{1,40}|true|false", re.IGNORECASE)


class _Entry(NamedTuple):
    row: DesignRow
    response: SheetResponse
    language: str
    image: str | None
    rubric: int


def write_sheets(
    design: Design,
    responses: Sequence[SheetResponse],
    folder: Path,
    *,
    raters: int = 1,
    shared: int | None = None,
    images: Path | None = None,
) -> list[Path]:
    """Writes a CSV file and a page for each rater, and returns their paths.

    The first ``shared`` rows, or all, are on every sheet, and each of the others on one. Without a folder of images the
    sheets have none.
    """
    thumbnails, rubrics = Thumbnails(images, side=_SIDE), _rubrics(responses)
    entries: list[_Entry] = []
    for row, response in zip(design.rows, responses, strict=True):
        # Han characters look otherwise in Chinese than in Japanese, so that the language is that of the script.
        languages = (language_of_script(text) for text in (response.text, response.question))
        language = next((language for language in languages if language != UNKNOWN), "")
        rubric = list(rubrics).index(response.rubric.name)
        entries.append(_Entry(row, response, language, thumbnails.address(response.image), rubric))
    missing = [entry for entry in entries if entry.response.image and entry.image is None]
    if images is not None and missing:
        raise SettingsError(
            f"spotcheck: --images {images}: {len(missing)} of the images aren't there, or can't be read, such as "
            f"{missing[0].response.image!r:.60}. Name the folder that has them."
        )
    shared = len(entries) if shared is None else shared
    dealt_out = len(entries) - shared
    if 0 < dealt_out < raters:
        raise SettingsError(
            f"spotcheck: --raters {raters}: only {dealt_out} of {len(entries)} responses go to one rater each. Name as "
            "many raters at most, or leave out --shared."
        )
    paths = []
    for rater in range(raters):
        stem, name = (f"sheet_{rater + 1}", f"rater {rater + 1}") if raters > 1 else ("sheet", "")
        dealt = [entry for place, entry in enumerate(entries) if place < shared or (place - shared) % raters == rater]
        paths += [folder / f"{stem}.csv", folder / f"{stem}.html"]
        write_csv(paths[-2], COLUMNS, _lines(dealt, name))
        write_whole(paths[-1], _page(dealt, list(rubrics.values()), name))
    return paths


def _rubrics(responses: Sequence[SheetResponse]) -> dict[str, str]:
    """Returns the judge's instructions by each rubric, with dots in place of the response that it grades."""
    dots = JudgeItem("…", ("…",), "…", "…")
    return {
        rubric.name: "\n\n".join(message["content"] for message in rubric.messages(dots, delimiters=False))
        for rubric in {response.rubric.name: response.rubric for response in responses}.values()
    }


def _lines(entries: Sequence[_Entry], rater: str) -> Iterator[list[str | float | None]]:
    for row, response, *_ in entries:
        text = f"'{response.text}" if _LIKE_A_NUMBER.fullmatch(response.text) else response.text
        cells = [row.row, response.culture, response.question, "\n".join(response.references), text]
        yield [*cells, response.image, row.lowest, row.highest, None, None, rater or None]


def _page(entries: Sequence[_Entry], rubrics: Sequence[str], rater: str) -> str:
    style = asset("culture_tasks.pages", "page.css") + asset("culture_tasks.people", "page/sheet.css")
    script = asset("culture_tasks.people", "page/sheet.js")
    template = templates_of("culture_tasks.people", "page").get_template("sheet.html")
    return template.render(
        entries=entries,
        rubrics=rubrics,
        rater=rater,
        cultures=list(dict.fromkeys(entry.response.culture for entry in entries)),
        policy=content_security_policy(style, script),
        style=as_markup(style),
        script=as_markup(script),
    )
