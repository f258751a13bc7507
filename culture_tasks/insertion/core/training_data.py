"""A benchmark's training cases as requests to a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culture_tasks.benchmarks.registry import benchmarks, cultures
from culture_tasks.benchmarks.training_cases import AnsweredQuestion, Locality, OffersTraining
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.insertion.core.requests import Insertion, Request, TrainingCase
from culture_tasks.insertion.core.state import DataFacts
from culture_tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The data that a method is fitted on."""

    cases: Sequence[TrainingCase]
    facts: DataFacts


def load_training_data(settings: Settings, limit: int | None = None, benchmark: str | None = None) -> TrainingData:
    """Loads training cases, with their images checked, as the benchmark's tasks phrase them.

    Equal requests are one object. ``limit`` takes this many, evenly spaced over all; without a name the benchmark is
    the only one that offers any, own cultures aside.
    """
    offers = {name: entry for name, entry in benchmarks().items() if isinstance(entry, OffersTraining)}
    published = [name for name in offers if name not in cultures()]
    name = published[0] if benchmark is None and len(published) == 1 else benchmark
    if name not in offers:
        hint = "" if name is None else nearest(name, offers)
        raise SettingsError(
            f"insertion: no training cases of the benchmark {name!r}.{hint} Choose one of {', '.join(offers)}."
        )
    offered = offers[name].training_cases(settings, limit)
    requests: dict[tuple[Path, str, str], Request] = {}

    def insertion(item: AnsweredQuestion, kind: Locality | None = None) -> Insertion:
        request = Request.about(item.image, item.question, item.system)
        return Insertion(requests.setdefault((item.image, item.system, item.question), request), item.answer, kind)

    cases = [
        TrainingCase(
            case.scenario,
            insertion(case.inserted),
            generality=tuple(map(insertion, case.generality)),
            locality=tuple(insertion(item, kind) for kind, item in case.locality),
        )
        for case in offered.cases
    ]
    scenarios = tuple(sorted({case.scenario for case in cases}))
    facts = DataFacts(raw=offered.raw, cases=offered.fingerprint, count=len(cases), scenarios=scenarios)
    return TrainingData(cases, facts)
