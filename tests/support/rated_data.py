"""Rated responses for tests: rows in CARE's layout, and questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from culture_tasks.preferences.ratings import RatedAnswer, RatedQuestion
from culture_tasks.results.trained_on import question_fingerprint


def row(question: str, response: str, rating: Any, **changes: Any) -> dict[str, Any]:
    """A row in CARE's layout."""
    return {
        "question": question,
        "answer": f"the answer to {question}",
        "response": response,
        "human_rating": rating,
        "source": "LLM",
        "cul_type": "Social norms",
        "associated_culture": "Native (Chinese)",
    } | changes


def rows_of(questions: int, ratings: Sequence[float] = (3, 9, 5), **changes: Any) -> list[dict[str, Any]]:
    """Rows of so many questions, each with a response of every rating."""
    return [
        row(f"What is polite at table {number}?", f"custom {rating} of table {number}", rating, **changes)
        for number in range(questions)
        for rating in ratings
    ]


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Writes rows as JSONL."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def question(text: str, ratings: Sequence[float], **facts: Any) -> RatedQuestion:
    """A question with a response of each rating, which says its number."""
    answers = [RatedAnswer(f"response {number}", rating, "model") for number, rating in enumerate(ratings)]
    return RatedQuestion(text=text, fingerprint=question_fingerprint(text), answers=answers, **facts)
