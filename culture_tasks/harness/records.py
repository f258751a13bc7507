"""Records whose verdicts may still be on their way.

Both harnesses call ``process_results`` document by document and keep what it returns in two places: the lists that
are aggregated, and the logged samples. A :class:`PendingRecord` is put into both at once, before its verdict is there.
Whoever reads it first (an aggregation, the log writer, pickle on its way to rank 0) waits for the verdict; all verdicts
of a task are on their way by then.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class PendingRecord(dict[str, Any]):
    """A dictionary that completes itself when it is first read.

    It is never empty before, since the JSON encoder takes a shortcut for empty dictionaries. Pickled or copied, it
    becomes a plain, complete dictionary.
    """

    __slots__ = ("_finish",)

    def __init__(self, known: Mapping[str, Any], finish: Callable[[], Mapping[str, Any]]) -> None:
        """Makes a record.

        Args:
            known: What is known at once, at least one key.
            finish: Gives the rest; called once, on first reading, and may block.
        """
        if not known:
            raise ValueError("PendingRecord: found no key that is known at once; needed is at least one")
        super().__init__(known)
        self._finish: Callable[[], Mapping[str, Any]] | None = finish

    def _complete(self) -> None:
        finish = self._finish
        if finish is not None:
            rest = finish()
            if self._finish is not None:
                super().update(rest)
                self._finish = None

    def __getitem__(self, key: str) -> Any:
        self._complete()
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._complete()
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._complete()
        return super().__iter__()

    def __len__(self) -> int:
        self._complete()
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        self._complete()
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        self._complete()
        return super().__repr__()

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        self._complete()
        return dict, (dict(super().items()),)

    def get(self, key: str, default: Any = None) -> Any:
        """Completes the record and gets a value."""
        self._complete()
        return super().get(key, default)

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """Completes the record and returns its keys."""
        self._complete()
        return super().keys()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """Completes the record and returns its values."""
        self._complete()
        return super().values()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """Completes the record and returns its items."""
        self._complete()
        return super().items()

    def copy(self) -> dict[str, Any]:
        """Completes the record and returns a plain dictionary."""
        self._complete()
        return dict(super().items())
