"""How well natives agree on answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from culture_tasks.benchmarks.crosscult.culture.entries import items_of, step_of, text_of, verdicts_on
from culture_tasks.benchmarks.crosscult.culture.steps import HOLDS, VERDICTS
from culture_tasks.benchmarks.crosscult.editions import Partition
from culture_tasks.benchmarks.cultures import Figure, State

_FEWEST_CHECKED = 10  # answers with two checks below which alpha says nothing


def agreement_on(state: State, partition: Partition) -> Iterator[Figure]:
    """Yields how well the checkers of one partition agree, and the share of answers that they accept."""
    import numpy as np

    from culture_tasks.metrics.rater_agreement import krippendorff_alpha
    from culture_tasks.metrics.resampling import LEAST_DEFINED, replicates

    config = state.config
    step = step_of("check", config, partition)
    texts = (text_of(state, step_of("answer", config, partition), item.name)[0] for item in items_of(state).items)
    verdicts = [found for text in texts if text is not None and (found := verdicts_on(state, step, text))]
    both = [found for found in verdicts if len(found) > 1]
    missing = ""
    if len(both) < _FEWEST_CHECKED:
        missing = f"{len(both)} answers have two checks; {_FEWEST_CHECKED} are needed"
    elif len(distinct := {verdict for found in both for verdict in found}) == 1:
        missing = f"every verdict is that {VERDICTS[distinct.pop()]}"
    name = f"alpha (nominal), checks in {partition.language}"
    if missing:
        yield Figure(name, step, float("nan"), len(both), missing=missing)
    else:
        codes = {verdict: float(code) for code, verdict in enumerate(VERDICTS)}
        ratings = np.full((max(map(len, both)), len(both)), np.nan)
        for column, found in enumerate(both):
            ratings[: len(found), column] = [codes[verdict] for verdict in found]
        alpha = krippendorff_alpha(ratings, "nominal").value
        draws = replicates(lambda places: krippendorff_alpha(ratings[:, places], "nominal").value, range(len(both)))
        defined = draws[np.isfinite(draws)]
        enough = defined.size >= LEAST_DEFINED * draws.size
        low, high = np.quantile(defined, [0.025, 0.975]).tolist() if enough else (float("nan"), float("nan"))
        floor = config.options["least_alpha"] if config.options["least_alpha"] > -1.0 else None
        yield Figure(name, step, alpha, len(both), low, high, floor=floor)
    accepted = [float(found.count(HOLDS) >= config.options["agree"]) for found in verdicts]
    yield share_of("answers accepted", step, accepted)


def share_of(name: str, step: str, values: Sequence[float]) -> Figure:
    """Returns a share of values that are 1 or 0, with its interval."""
    from culture_tasks.metrics.intervals import share_interval

    if not values:
        return Figure(name, step, float("nan"), 0, missing="nobody has done it yet")
    interval = share_interval(values)
    return Figure(name, step, interval.value, interval.n, interval.low, interval.high)
