"""How NormAd is reported: by amount of context, label, topic, and the bins of Inglehart and Welzel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from culture_tasks.benchmarks.normad.benchmark import (
    ABOUT,
    AUTHORS,
    PERCENT,
    SAID,
    SHARE,
    UNPARSED,
    UNREAD,
    YES_OR_NO,
)
from culture_tasks.benchmarks.normad.documents import BIN_OF, BINS, LABELS, TOPICS
from culture_tasks.benchmarks.reporting import (
    MODEL,
    At,
    BenchmarkReport,
    ColumnOf,
    Field,
    FigureOf,
    FurtherScore,
    TableOf,
    UnitOf,
    columns_by,
    scores_by,
)
from culture_tasks.vocabulary import places

_PAPER = "NormAd (Rao et al., 2025)"
_TITLES = {f"normad_{condition}": about.capitalize() for condition, about in ABOUT.items()}
_TOPICS = {topic: topic.replace("_", " ").capitalize() for topic in TOPICS}
_BY: Mapping[str, Mapping[str, str]] = {
    "label": LABELS,
    "topic": _TOPICS,
    "bin": dict(zip(BINS, BINS, strict=True)),
}
_QUANTITIES = {
    "score": "accuracy",
    YES_OR_NO: "accuracy on stories that are not neutral",
    AUTHORS: "accuracy by the authors' reader",
    UNPARSED: "replies that choose nothing",
}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    known = list(units)
    for statistic, quantity in _QUANTITIES.items():
        yield TableOf(
            key=f"normad_{statistic}",
            title=f"NormAd: {quantity} in percent, by amount of context",
            source=_PAPER,
            columns=tuple(
                ColumnOf(unit.key, _TITLES.get(unit.key, unit.key), At(unit.key, statistic)) for unit in known
            ),
            headers=MODEL,
        )
    for unit in known:
        yield TableOf(
            key=f"{unit.key}_said",
            title=f"{unit.key}: replies in percent, by option",
            source=_PAPER,
            columns=tuple(ColumnOf(name, LABELS[label], At(unit.key, name)) for label, name in SAID.items()),
            headers=MODEL,
            notes=(
                "The remaining replies choose nothing. Of the release's stories 36 % are Yes, 33 % No, 31 % Neither.",
            ),
            question="biases",
        )
        for field, groups in _BY.items():
            yield TableOf(
                key=f"{unit.key}_by_{field}",
                title=f"{unit.key}: accuracy in percent, by {field}",
                source=_PAPER,
                columns=(*columns_by(field, groups, unit.key), ColumnOf("all", "All", At(unit.key), sums_up=True)),
                headers=MODEL,
            )


REPORT = BenchmarkReport(
    fields=(
        Field("label", tuple(LABELS), LABELS),
        Field("topic", TOPICS, _TOPICS),
        Field("bin", tuple(BINS), {name: name for name in BINS}),
        Field("country", tuple(BIN_OF), places=places(BIN_OF)),
    ),
    splits=(("label",), ("topic",), ("bin",), ("country",)),
    culture="country",
    ability="norms",
    further=(
        FurtherScore(YES_OR_NO, PERCENT),
        FurtherScore(AUTHORS, PERCENT),
        *(FurtherScore(name, SHARE) for name in SAID.values()),
        FurtherScore(UNPARSED, UNREAD),
    ),
    tables=_tables,
    figures=tuple(
        FigureOf(
            key=f"normad_{field}",
            title=f"NormAd by {field}",
            source=_PAPER,
            kind="bars",
            groups=field,
            value="Accuracy (percent)",
            mark=scores_by(field),
        )
        for field in ("label", "bin")
    ),
)
