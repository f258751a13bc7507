"""Showing how far a loop is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")

Note = Callable[[], str]
"""Says what to show beside the progress, such as the loss."""


class Counted(Generic[Item]):
    """Items whose number is known before they are made.

    Args:
        items: The items.
        count: Their number.
    """

    def __init__(self, items: Iterable[Item], count: int) -> None:
        self._items = items
        self._count = count

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __len__(self) -> int:
        return self._count


class Progress(Protocol):
    """Shows the progress of a loop."""

    def __call__(
        self, items: Sequence[Item] | Counted[Item], description: str, note: Note | None = None
    ) -> Iterable[Item]:
        """Yields the items as they are consumed.

        Args:
            items: What the loop goes over.
            description: What the loop does.
            note: Asked after each item.
        """


def progress_bar(
    items: Sequence[Item] | Counted[Item], description: str, note: Note | None = None, *, hidden: bool = False
) -> Iterable[Item]:
    """Progress that shows a bar on standard error."""
    from tqdm import tqdm

    bar = tqdm(items, desc=description, disable=hidden)
    for item in bar:
        yield item
        if note is not None:
            bar.set_postfix_str(note(), refresh=False)


def silent(
    items: Sequence[Item] | Counted[Item],
    description: str,  # noqa: ARG001 - shows nothing
    note: Note | None = None,  # noqa: ARG001
) -> Iterable[Item]:
    """Progress that shows nothing."""
    return items
