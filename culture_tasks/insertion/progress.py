"""Showing how far a loop is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Note = Callable[[], str]


class Progress(Protocol):
    """Shows the progress of a loop."""

    def __call__(self, items: Sequence[Item], description: str, note: Note | None = None) -> Iterable[Item]:
        """Yields the items as they are consumed.

        Args:
            items: What the loop goes over.
            description: What the loop does.
            note: Says what to show beside the progress, such as the loss; asked after each item.
        """


def progress_bar(
    items: Sequence[Item], description: str, note: Note | None = None, *, hidden: bool = False
) -> Iterable[Item]:
    """Progress that shows a bar on standard error."""
    from tqdm import tqdm

    bar = tqdm(items, desc=description, disable=hidden)
    for item in bar:
        yield item
        if note is not None:
            bar.set_postfix_str(note(), refresh=False)


def silent(items: Sequence[Item], description: str, note: Note | None = None) -> Iterable[Item]:  # noqa: ARG001
    """Progress that shows nothing."""
    return items
