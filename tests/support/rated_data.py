"""Rated responses for tests: rows in CARE's layout, questions, and results of models that a judge has graded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from support.sample_files import JUDGE, record, write_run

from culture_tasks.preferences.ratings import RatedAnswer, RatedQuestion
from culture_tasks.results.trained_on import question_fingerprint

CARE_JUDGE = JUDGE | {
    "model": "gpt-4o",
    "rubric": "care_norms_commonsense",
    "prompt": "care_norms_commonsense_user.v1",
    "prompt_sha256": "b" * 64,
}


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


def care_sample(
    item: str,
    response: str,
    rating: float | None,
    *,
    judge: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A sample of CARE with a verdict; without a rating it could not be read."""
    groups = {"language": "zh", "prompt_language": "zh", "category": "norms", "culture": "Native (Chinese)"}
    texts = {"question": f"怎么做{item}？", "references": [f"答案{item}"]}
    logged = record("care", "care_zh", "care_rating", item, groups, **texts)
    outcome = "unparsable" if rating is None else "scored"
    run = {"response": response, "outcome": outcome, "rating": rating, "rationale": "because", "tokens": [1, 1]}
    logged |= {"judge": judge or CARE_JUDGE, "runs": [run], "outcomes": {outcome: 1}, **changes}
    return {"record": logged}


def write_model(
    folder: Path, model: str, ratings: Sequence[float | None], task: str = "care_zh", **changes: Any
) -> Path:
    """Writes the results of a model that answered an item for each of these ratings."""
    samples = [
        care_sample(f"zh-{number}", f"{model}的回答{number}", rating, **changes)
        for number, rating in enumerate(ratings)
    ]
    return write_run(folder / model, model, {task: samples})
