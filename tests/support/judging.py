"""What tests of judges share: a key to look for, and a rule that loses no time."""

from __future__ import annotations

from culture_tasks.judges.retries import RetryRule

KEY = "sk-very-secret-0123456789abcdef"
QUICK = RetryRule(attempts=4, longest=20.0, first=0.004, cap=0.02)
