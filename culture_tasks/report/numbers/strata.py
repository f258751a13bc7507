"""The strata of corrections by people or a better judge: the cultures of a task, merged where few of one are rated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import Mask
from culture_tasks.results.reading import Samples
from culture_tasks.results.runs import Run


def cultures_of(samples: Samples, run: Run) -> list[str]:
    """Returns the culture of each sample of a run; empty texts where its benchmark names none."""
    assert run.samples is not None
    benchmark = benchmarks().get(run.benchmark or "")
    texts = None if benchmark is None else samples.groups.get(benchmark.report().culture)
    if texts is None:
        return [""] * run.samples.n
    return [texts.names[code] if code >= 0 else "" for code in texts.codes[run.samples.rows].tolist()]


class CultureInTask(NamedTuple):
    """The responses of one culture in one task; its text is their name for a reader."""

    task: str
    culture: str
    name: str

    def __str__(self) -> str:
        return self.name


def pooled(strata: Sequence[CultureInTask], graded: Mask) -> list[CultureInTask]:
    """Merges cultures with fewer than two graded responses in some task with others; ``graded`` has a row per run.

    Every response had the same chance to be graded, so strata may be merged.
    """

    def lacking(names: Sequence[CultureInTask]) -> set[CultureInTask]:
        counts = [Counter(compress(names, row)) for row in graded]
        return {label for label, size in Counter(names).items() if min(row[label] for row in counts) < min(2, size)}

    graded_by_all: Mask = np.logical_and.reduce(graded)
    counts = Counter(stratum.culture for stratum in compress(strata, graded_by_all))
    few = {stratum.culture for stratum in lacking(strata)}
    larger = sorted({stratum.culture for stratum in strata} - few, key=lambda culture: counts[culture])
    labels = list(strata)
    while few:
        labels = [
            stratum._replace(culture="", name="other cultures") if stratum.culture in few else stratum
            for stratum in strata
        ]
        if not (lacking(labels) and larger):
            break
        few.add(larger.pop(0))
    return labels
