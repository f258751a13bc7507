"""How the agreement report writes its numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culture_tasks.metrics.rater_agreement import Estimate


def estimate_text(found: Estimate) -> str:
    """Returns a statistic with its interval, such as ``0.924 (0.918, 0.930)``, or ``n/a``."""
    if math.isnan(found.value):
        return "n/a"
    interval = "" if math.isnan(found.low) else f" ({found.low:.3f}, {found.high:.3f})"
    return f"{found.value:.3f}{interval}"
