"""What tests of judges share: a key to look for, and patience that loses no time."""

from __future__ import annotations

from culture_tasks.judges.endpoint.pacing import Patience

KEY = "sk-very-secret-0123456789abcdef"
QUICK = Patience(longest=20.0, first=0.004, cap=0.02)
BRIEF = Patience(longest=0.2, first=0.004, cap=0.02)
