"""Numbers as papers print them."""

from __future__ import annotations

import re
from typing import NamedTuple

_PRINTED = re.compile(r"(?P<sign>[+-]? ?)(?P<value>\d+(?:\.(?P<digits>\d+))?)(?: ± (?P<deviation>\d+\.\d+)|%)?")


class Number(NamedTuple):
    """A printed number.

    Attributes:
        value: Its value; the mean of a "mean ± deviation".
        digits: Digits after the point.
        deviation: The deviation, where one is printed.
    """

    value: float
    digits: int
    deviation: float | None = None

    @property
    def half_unit(self) -> float:
        """How far the number before rounding may have been from the printed one."""
        return float(0.5 * 10.0**-self.digits)


def number(printed: str) -> Number:
    """Reads a cell: ``4.89``, ``50%``, ``+ 0.72``, ``- 0.10`` or ``6.440 ± 0.430``.

    Raises:
        ValueError: If it is none of these.
    """
    found = _PRINTED.fullmatch(printed)
    if found is None:
        raise ValueError(f"published: {printed!r} is no number as the papers print them.")
    value = float(found["value"]) * (-1.0 if found["sign"].startswith("-") else 1.0)
    deviation = float(found["deviation"]) if found["deviation"] else None
    return Number(value, len(found["digits"] or ""), deviation)
