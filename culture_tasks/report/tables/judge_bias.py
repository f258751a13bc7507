"""Biases of a judge: its errors against people's ratings, beside facts that should make no difference to a score."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.metrics.judge_bias import ProbeEffect, log_length, model_families, probe_effect
from culture_tasks.metrics.significance import holm
from culture_tasks.people.spotcheck_draw import SheetResponse
from culture_tasks.report.model import Number, Table
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.numbers.numbers import nan_to_none
from culture_tasks.report.tables.layout import COUNT, OWN_SCALE, Values, columns_of, filled
from culture_tasks.report.wording import P_VALUE
from culture_tasks.results.runs import Run

_ABOUT = (
    "Effect: how much higher the judge's score is than people's, beside other responses of the same task, culture and "
    "model (for the family: of the same task and culture), on the scale of the scores. 0 means that the judge isn't "
    "swayed. Intervals (95 %) are robust to clusters of responses to one item; p is adjusted for all probes of the "
    "table by Holm's method. Responses: those of a task, culture and model whose responses differ in the probe. A "
    "judge that avoids the ends of the scale has an effect below 0 per point of people's rating, and seems to mark "
    "down whatever goes with quality."
)


class JudgedResponse(NamedTuple):
    """A response with the judge's score and the mean of people's ratings, and its run."""

    run: Run
    response: SheetResponse
    people: float


class _Probe(NamedTuple):
    """A fact of a response, NaN where it isn't known; one that all responses of a model share compares models."""

    title: str
    value: Callable[[JudgedResponse], float]
    missing: str
    between_models: bool = False


def _same_family(judgement: JudgedResponse) -> float:
    judges = [model_families(judge.model) for judge in judgement.run.settings.judges]
    model = model_families(judgement.run.model)
    return float(any(model & judge for judge in judges)) if model and judges and all(judges) else math.nan


_PROBES = (
    _Probe(
        "Length of the response, per doubling",
        lambda judgement: log_length(judgement.response.text),
        "no rated response has a text",
    ),
    _Probe(
        "Judge and model of one family",
        _same_family,
        "the names of judge and model don't say their families",
        between_models=True,
    ),
    _Probe("People's rating, per point", lambda judgement: judgement.people, "no response is rated"),
)


def judge_biases(judgements: Iterable[JudgedResponse]) -> Table:
    """Returns the table of all probes, with a part for each judge and benchmark."""
    parts: dict[Hashable, list[JudgedResponse]] = {}
    for judgement in judgements:
        if not math.isnan(judgement.response.judged):
            key = (judgement.run.settings.judged_by, judgement.run.benchmark, judgement.response.scale)
            parts.setdefault(key, []).append(judgement)
    effects = [(part, probe, _effect(part, probe)) for part in parts.values() for probe in _PROBES]
    adjusted = holm([effect.p for *_, effect in effects]).tolist()
    columns = (
        *columns_of(OWN_SCALE, effect="Effect"),
        *columns_of(P_VALUE, p_holm="p (Holm)"),
        *columns_of(COUNT, responses="Responses"),
    )
    rows: list[tuple[tuple[str, ...], Values]] = []
    for (part, probe, effect), p in zip(effects, adjusted, strict=True):
        run, scale = part[0].run, part[0].response.scale
        benchmark = benchmarks().get(run.benchmark or "")
        texts = (run.settings.judged_by, run.task if benchmark is None else benchmark.title, probe.title)
        value, low, high = map(nan_to_none, (effect.value, effect.low, effect.high))
        cell = Number(value, scale_of_differences(scale), low, high, n=effect.n, note=effect.reason or "")
        rows.append((texts, {"effect": cell, "p_holm": Number(nan_to_none(p), P_VALUE), "responses": effect.n}))
    headers, title = ("Judge", "Benchmark", "Probe"), "Biases of the judge"
    return filled(Table("spotcheck_biases", title, headers, columns, notes=(_ABOUT,), question="judges"), rows)


def _effect(judgements: Sequence[JudgedResponse], probe: _Probe) -> ProbeEffect:
    values = [probe.value(judgement) for judgement in judgements]
    if all(map(math.isnan, values)):
        return ProbeEffect(reason=probe.missing)
    errors = [judgement.response.judged - judgement.people for judgement in judgements]
    strata = [
        (judgement.run.task, judgement.response.culture, "" if probe.between_models else judgement.run.model)
        for judgement in judgements
    ]
    clusters = [judgement.response.cluster for judgement in judgements]
    return probe_effect(errors, values, strata, clusters=clusters)
