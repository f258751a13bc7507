"""CARE's hooks for lmms-eval."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from culture_tasks.benchmarks.care.documents import CareDoc, Prompt
from culture_tasks.benchmarks.care.prompts import render
from culture_tasks.harness import care
from culture_tasks.harness.lmms_eval.documents import documents
from culture_tasks.harness.lmms_eval.messages import text_part, user_message

docs_ar = documents("care_ar")
docs_ja = documents("care_ja")
docs_zh = documents("care_zh")
docs_en_ar = documents("care_en_ar")
docs_en_ja = documents("care_en_ja")
docs_en_zh = documents("care_en_zh")

text_plain = partial(render, "plain")
text_roleplay = partial(render, "roleplay")
text_cot = partial(render, "cot")

metric_list = care.metrics()


def _messages(prompt: Prompt, doc: CareDoc) -> list[dict[str, Any]]:
    return user_message([text_part(render(prompt, doc))])


messages_plain = partial(_messages, "plain")
messages_roleplay = partial(_messages, "roleplay")
messages_cot = partial(_messages, "cot")


def target(doc: CareDoc) -> str:
    """Returns the reference answer."""
    return doc["answer"]


def process_results(doc: CareDoc, results: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's records."""
    return care.results(doc, results)
