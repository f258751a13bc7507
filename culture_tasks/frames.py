"""Results and samples of both harnesses as pandas data frames, for notebooks and programs.

Each function takes the arguments of :func:`scores`.

Example:
    >>> from culture_tasks import frames
    >>> scores = frames.scores("results")  # doctest: +SKIP
    >>> scores[scores.dimension == "country"].pivot(index="group", columns="model", values="value")  # doctest: +SKIP
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from culture_tasks.errors import DataError
from culture_tasks.report.building import Options, build
from culture_tasks.report.model import Report
from culture_tasks.report.numbers.selection import SCORE
from culture_tasks.results.finding import LOSSES
from culture_tasks.vocabulary import place

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder or a glob pattern, or several."""

_SCORES = "model benchmark task metric dimension group value low high n coverage unit marks remarks"
_COUNTRIES = "model place country value low high n raw beside_others tasks marks"
_OF_RUN = ("benchmark", "task", "harness", "model_name", "date", "items", "scored", "unjudged", "coverage", "path")
_OF_SAMPLE = ("item", "score", "outcome", "question", "references", "response", "rationale", "prompt", "image", "doubt")


def scores(paths: Paths, options: Options | None = None) -> pd.DataFrame:
    """Returns the scores of all models, whole and by group, one row each.

    The numbers are those of the report: on its scales, with 95 % intervals.

    Args:
        paths: Where the harnesses' result and sample files are.
        options: As for :func:`~culture_tasks.report.building.build`; None for its defaults.

    Returns:
        The columns ``model``; ``benchmark``, None for another task of a harness; ``task``, a task or group; ``metric``;
        ``dimension`` and ``group``, such as ``country`` and ``brazil``, empty for the whole; ``value``, ``low`` and
        ``high``, in ``unit``; ``n``, scored items; ``coverage``, scored items over items, from 0 to 1; ``marks``, the
        report's marks, with spaces between; ``remarks``, of which part of the items the whole is, as ``first 14 of 42
        items``, and how many responses no judge has graded.

    Raises:
        DataError: If no run can be used.
    """
    import pandas as pd

    report = _report(paths, options)
    rows: list[tuple[Any, ...]] = []
    for number in report.numbers:
        unit, is_score = report.units[number.unit], number.statistic == SCORE
        if is_score or number.where:
            names = (report.entrants[number.row].label, unit.benchmark, unit.key)
            address = (unit.metric if is_score else number.statistic, number.dimension, number.group)
            values = (number.value, number.low, number.high, number.n, number.coverage, number.scale.unit)
            rows.append((*names, *address, *values, " ".join(number.flags), "; ".join(number.remarks)))
    return pd.DataFrame(rows, columns=_SCORES.split())


def countries(paths: Paths, options: Options | None = None) -> pd.DataFrame:
    """Returns how good each model is for each country, over all benchmarks that ask about it, one row each.

    Returns:
        The columns ``model``; ``place``, the country's code of ISO 3166; ``country``, its name; ``value``, the score
        with partial pooling (:func:`~culture_tasks.metrics.partial_pooling.pooled`), from 0 to 100, with its 95 %
        interval ``low`` and ``high``; ``n``, questions about the country; ``raw``, the mean without pooling;
        ``beside_others``, ``above`` or ``below`` where the score is significantly above or below the mean of the
        model's other countries, else None; ``tasks``, the tasks and groups that ask about it, with spaces between;
        ``marks``, the report's marks, with spaces between.

    Raises:
        DataError: If no run can be used.
    """
    import pandas as pd

    report = _report(paths, options)
    rows: list[tuple[Any, ...]] = []
    for score in report.countries:
        cell, model = score.cell, report.entrants[score.entrant].label
        names = (model, score.place, place(score.place).name)
        numbers = (cell.value, cell.low, cell.high, cell.n, score.raw)
        rows.append((*names, *numbers, score.beside_others, " ".join(score.means), " ".join(cell.flags)))
    return pd.DataFrame(rows, columns=_COUNTRIES.split())


def samples(paths: Paths, options: Options | None = None) -> pd.DataFrame:
    """Returns the logged samples of all runs in use, one row each.

    Only tasks of this package have them: other tasks log in other layouts.

    Returns:
        The columns ``model``; ``benchmark``; ``task``; ``item``, the question's name, the same for every model;
        ``score``, NaN without one; ``outcome`` of the judge's verdict, empty where none grades; ``question``;
        ``references``, a tuple of texts; ``response``, the first of several; ``rationale``; ``prompt``, as sent;
        ``image``; ``doubt``, why the verdict should be looked at twice; then a column for each kind of group, such as
        ``country``.

    Raises:
        DataError: If no run can be used.
        OSError: If a sample file has gone.
    """
    import pandas as pd

    report = _report(paths, options)
    labels = report.labels
    rows: list[dict[str, Any]] = []
    for key, run in report.runs.items():
        of_run = {"model": labels[key], "benchmark": run.benchmark, "task": run.task}
        rows += [
            of_run | {name: getattr(sample, name) for name in _OF_SAMPLE} | dict(sample.groups)
            for sample in report.samples.read(key)
        ]
    fields = dict.fromkeys(("model", "benchmark", "task", *_OF_SAMPLE, *(name for row in rows for name in row)))
    return pd.DataFrame(rows, columns=list(fields)).astype({"score": float})


def runs(paths: Paths, options: Options | None = None) -> pd.DataFrame:
    """Returns the runs in use, one row each.

    Returns:
        The columns ``model``; ``benchmark``, None for another task of a harness; ``task``; ``harness``; ``model_name``,
        as the harness has it; ``judge``, empty where none grades; ``date``; ``items``, ``scored`` and ``unjudged``,
        numbers of samples; ``coverage``, scored items over items; ``path``, the result file.

    Raises:
        DataError: If no run can be used.
    """
    import pandas as pd

    report = _report(paths, options)
    labels = report.labels
    rows = [
        {"model": labels[key], "judge": run.settings.judged_by, **{name: getattr(run, name) for name in _OF_RUN}}
        for key, run in report.runs.items()
    ]
    return pd.DataFrame(rows, columns=["model", *_OF_RUN, "judge"])


def _report(paths: Paths, options: Options | None) -> Report:
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(several, Iterable) or not all(isinstance(path, str | os.PathLike) for path in several):
        raise DataError(f"frames: {paths!r:.80} is no path. Expected a file, a folder or a glob pattern, or several.")
    report = build([os.fspath(path) for path in several], options or Options())
    for problem in report.problems:
        if problem.kind in LOSSES:
            _log.warning("%s: %s", problem.path, problem.detail)
    return report
