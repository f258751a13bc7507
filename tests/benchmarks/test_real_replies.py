"""Replies of SmolLM2-135M-Instruct, greedy and at temperature 1, with labels given by reading them.

``label`` is that reading, and ``read`` the reader's where it is another: of 135 million parameters, a reply may
choose twice ("True. … making it a false answer"), or count along ("just 1 answer with a single answer id").
"""

from __future__ import annotations

import json
from pathlib import Path

from culture_tasks.benchmarks.cedar.reading.reader import read_reply
from culture_tasks.benchmarks.choices import read_choice

ROWS = Path(__file__).parents[1] / "fixtures" / "replies" / "smollm2.jsonl"


def test_replies_of_a_small_model_are_read_as_their_table_says():
    rows = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    read = [read_choice(row["reply"], row["options"]) if "options" in row else read_reply(row["reply"]) for row in rows]
    expected = [row.get("read", row["label"]) for row in rows]
    assert [pair for pair in zip(rows, read, expected, strict=True) if pair[1] != pair[2]] == []
    wrong = [row for row in rows if row.get("read") is not None]
    assert len(wrong) <= 0.07 * len(rows)
