"""Showing how far a loop is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

Item = TypeVar("Item")

Note = Callable[[], str]
"""Returns a text to show beside the progress, such as the loss; called after each item."""


class Progress(Protocol):
    """Shows the progress of a loop."""

    def __call__(
        self, items: Iterable[Item], description: str, note: Note | None = None, total: int | None = None
    ) -> Iterable[Item]:
        """Yields the items as they are consumed; ``total`` is their number where they have no length."""


def progress_bar(
    items: Iterable[Item],
    description: str,
    note: Note | None = None,
    total: int | None = None,
    *,
    hidden: bool = False,
) -> Iterable[Item]:
    """Progress that shows a bar on standard error."""
    from tqdm import tqdm

    bar = tqdm(items, desc=description, total=total, disable=hidden)
    for item in bar:
        yield item
        if note is not None:
            bar.set_postfix_str(note(), refresh=False)


def silent(
    items: Iterable[Item],
    description: str,  # noqa: ARG001 - shows nothing
    note: Note | None = None,  # noqa: ARG001
    total: int | None = None,  # noqa: ARG001
) -> Iterable[Item]:
    """Progress that shows nothing."""
    return items
