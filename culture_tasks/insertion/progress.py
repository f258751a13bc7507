"""A progress bar on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from culture_tasks.insertion.interface import Item


def bar(items: Sequence[Item], description: str, *, hidden: bool = False) -> Iterable[Item]:
    """Passes items on as they come, and shows how far that is."""
    from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]

    yield from tqdm(items, desc=description, disable=hidden)
