"""Whether lmms-eval finds our tasks by its plug-ins, as far as that can be seen without starting it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points

_GROUP = "lmms_eval.models"
"""Entry points that lmms-eval loads when it starts, ours among them."""


def plug_in_problems() -> Iterator[str]:
    """Yields why lmms-eval doesn't find our tasks by itself, as far as its plug-ins are the reason.

    lmms-eval loads plug-ins in the order in which they are installed, and none after one that raises.
    """
    points = list(entry_points(group=_GROUP))
    ours = next((place for place, point in enumerate(points) if point.value.startswith("culture_tasks.")), None)
    if ours is None:
        yield "lmms-eval doesn't see this package: reinstall it with `pip install .` in its checkout."
    for point in points[:ours]:
        try:
            payload = point.load()
            if callable(payload):  # as lmms-eval does
                payload()
        except Exception as error:  # noqa: BLE001 - another package's code may raise anything, and that is the finding
            yield (
                f"The lmms-eval plug-in {point.name!r} ({point.value}) fails to load: {type(error).__name__}: {error}. "
                "lmms-eval stops loading plug-ins there, so it may not know our tasks. Repair or remove it."
            )
