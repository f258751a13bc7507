"""Records whose verdicts may still be on their way.

Both harnesses call ``process_results`` document by document and keep what it returns in two places: the lists that
are aggregated, and the logged samples. A :class:`PendingRecord` is put into both at once, before its verdict is there.
Whoever reads it first (an aggregation, the log writer, pickle on its way to rank 0) waits for the verdict; all verdicts
of a task are on their way by then. From then on the record is as fast as a plain dictionary.

One document belongs to a dozen metrics, which all read the same few values. A :class:`PartRecord` lets them do so,
while the log holds the record once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeAlias

Groups: TypeAlias = Mapping[str, str | None]
"""The groups of a document, by field."""
NO_GROUPS: Groups = {}


class CompleteRecord(dict[str, Any]):
    """A record that has its verdict: a plain dictionary, which is also what it is pickled and copied as."""

    __slots__ = ("_finish",)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


class PendingRecord(dict[str, Any]):
    """A dictionary that completes itself when it is first read, and is a :class:`CompleteRecord` from then on.

    It is never empty before, since the JSON encoder takes a shortcut for empty dictionaries.
    """

    __slots__ = ("_finish",)

    def __init__(self, fields: Mapping[str, Any], finish: Callable[[], Mapping[str, Any]]) -> None:
        """Takes the known fields, at least one, and a function that gives the rest on first reading, and may block."""
        super().__init__(fields)
        self._finish: Callable[[], Mapping[str, Any]] | None = finish

    def complete(self) -> CompleteRecord:
        """Waits for the rest and returns the record, which is complete now; two threads get the same rest."""
        finish = self._finish
        if finish is not None:
            dict.update(self, finish())
            self._finish = None  # lets go of the prompt, the ticket and the verdict
        self.__class__ = CompleteRecord  # type: ignore[assignment]
        return self  # type: ignore[return-value]

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return self.complete().__reduce__()


def _complete_first(read: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a dictionary's way of reading that completes the record before it reads it."""
    return wraps(read)(lambda record, *args: read(record.complete(), *args))


_READING = ("__getitem__", "__contains__", "__iter__", "__len__", "__eq__", "__repr__")
for _name in (*_READING, "get", "keys", "values", "items", "copy"):
    setattr(PendingRecord, _name, _complete_first(getattr(dict, _name)))


class PartRecord(dict[str, Any]):
    """A view of a document's record, for metrics over a part of the documents.

    As a dictionary it is empty, so that a log has ``{}`` in its place, and not a copy of the record. It is a dictionary
    because lmms-eval looks for a ``score`` in nothing else. It travels with the few values that
    aggregations need, since lmms-eval sends each metric by itself.
    """

    __slots__ = ("record",)
    names = frozenset({"benchmark", "cluster", "item", "outcomes", "score", "run_scores"})

    def __init__(self, record: Mapping[str, Any]) -> None:
        super().__init__()
        self.record = record

    def __getitem__(self, key: str) -> Any:
        if key not in self.names:
            raise KeyError(key)
        return self.record[key]

    def __contains__(self, key: object) -> bool:
        return key in self.names and key in self.record

    def __reduce__(self) -> tuple[type[PartRecord], tuple[dict[str, Any]]]:
        return type(self), ({name: value for name, value in self.record.items() if name in self.names},)

    def get(self, key: str, default: Any = None) -> Any:
        """Gets a value of the record."""
        return self.record.get(key, default) if key in self.names else default


class CountedRecord(PartRecord):
    """A view for a count or a spread, without the score, from which lmms-eval would make a standard error."""

    __slots__ = ()
    names = frozenset({"benchmark", "cluster", "item", "outcomes", "run_scores"})


class ClusteredValue(float):
    """A document's value for a metric without records, with its cluster and groups: logged as a plain number."""

    __slots__ = ("cluster", "groups")
    cluster: tuple[str, str]
    groups: Groups

    def __new__(cls, value: float, cluster: tuple[str, str], groups: Groups = NO_GROUPS) -> ClusteredValue:
        """Takes a value, and the benchmark, the cluster and the groups of its document."""
        instance = super().__new__(cls, value)
        instance.cluster, instance.groups = cluster, groups
        return instance

    def __reduce__(self) -> tuple[type[ClusteredValue], tuple[float, tuple[str, str], Groups]]:
        return type(self), (float(self), self.cluster, self.groups)


class ClusteredLabels(tuple[Any, ...]):
    """A document's labels for a metric that is worked out from them, with the document's cluster and groups."""

    cluster: tuple[str, str]
    groups: Groups

    def __new__(cls, labels: Iterable[Any], cluster: tuple[str, str], groups: Groups = NO_GROUPS) -> ClusteredLabels:
        """Takes the labels, and the benchmark, the cluster and the groups of their document."""
        instance = super().__new__(cls, labels)
        instance.cluster, instance.groups = cluster, groups
        return instance

    def __reduce__(self) -> tuple[type[ClusteredLabels], tuple[tuple[Any, ...], tuple[str, str], Groups]]:
        return type(self), (tuple(self), self.cluster, self.groups)
