"""CrossCult-KIBench's hooks for lmms-eval, for its chat and its simple model types."""

from __future__ import annotations

from typing import Any, SupportsIndex

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc
from culture_tasks.benchmarks.crosscult.prompts import system_prompt
from culture_tasks.harness import crosscult
from culture_tasks.harness.lmms_eval.documents import documents
from culture_tasks.harness.lmms_eval.images import only_of_seen, watched
from culture_tasks.harness.lmms_eval.messages import image_part, text_part, user_message

docs_diagnostic = documents("crosscult_diagnostic")

docs_single_reliability = documents("crosscult_single_reliability")
docs_single_generality = documents("crosscult_single_generality")
docs_single_cross_language_locality = documents("crosscult_single_cross_language_locality")
docs_single_cross_scenario_locality = documents("crosscult_single_cross_scenario_locality")

docs_sequential_reliability_en = documents("crosscult_sequential_reliability_en")
docs_sequential_reliability_zh = documents("crosscult_sequential_reliability_zh")
docs_sequential_reliability_ar = documents("crosscult_sequential_reliability_ar")
docs_sequential_generality_en = documents("crosscult_sequential_generality_en")
docs_sequential_generality_zh = documents("crosscult_sequential_generality_zh")
docs_sequential_generality_ar = documents("crosscult_sequential_generality_ar")
docs_sequential_locality_en = documents("crosscult_sequential_locality_en")
docs_sequential_locality_zh = documents("crosscult_sequential_locality_zh")
docs_sequential_locality_ar = documents("crosscult_sequential_locality_ar")

docs_retention_en_zh_ar_en_after_1 = documents("crosscult_retention_en_zh_ar_en_after_1")
docs_retention_en_zh_ar_en_after_2 = documents("crosscult_retention_en_zh_ar_en_after_2")
docs_retention_en_zh_ar_en_after_3 = documents("crosscult_retention_en_zh_ar_en_after_3")
docs_retention_en_zh_ar_zh_after_2 = documents("crosscult_retention_en_zh_ar_zh_after_2")
docs_retention_en_zh_ar_zh_after_3 = documents("crosscult_retention_en_zh_ar_zh_after_3")
docs_retention_en_zh_ar_ar_after_3 = documents("crosscult_retention_en_zh_ar_ar_after_3")
docs_retention_ar_zh_en_ar_after_1 = documents("crosscult_retention_ar_zh_en_ar_after_1")
docs_retention_ar_zh_en_ar_after_2 = documents("crosscult_retention_ar_zh_en_ar_after_2")
docs_retention_ar_zh_en_ar_after_3 = documents("crosscult_retention_ar_zh_en_ar_after_3")
docs_retention_ar_zh_en_zh_after_2 = documents("crosscult_retention_ar_zh_en_zh_after_2")
docs_retention_ar_zh_en_zh_after_3 = documents("crosscult_retention_ar_zh_en_zh_after_3")
docs_retention_ar_zh_en_en_after_3 = documents("crosscult_retention_ar_zh_en_en_after_3")

process_results = only_of_seen(crosscult.results)

metric_list_diagnostic = crosscult.metrics("diagnostic")
metric_list_single = crosscult.metrics("single")
metric_list_chain = crosscult.metrics("sequential")


class Conversation(list[dict[str, Any]]):
    """Messages whose system message stays the only one.

    lmms-eval's Qwen backends put a system message of their own before whatever a task asks, and Qwen's chat template
    refuses a second one. The paper's stays, the backend's is left out.
    """

    def insert(self, index: SupportsIndex, message: dict[str, Any]) -> None:
        """Inserts a message, unless it would be a second system message."""
        if message.get("role") != "system" or all(each["role"] != "system" for each in self):
            super().insert(index, message)


def visuals(doc: Any) -> list[Any]:
    """Returns the image that the question is about."""
    return watched(doc, [doc["image"].convert("RGB")])


def insertion_image(doc: Any) -> Any:
    """Returns the image that the document's insertions are about."""
    from PIL import Image

    with Image.open(doc["insertion_image"]["path"]) as image:
        return image.convert("RGB")


def text(doc: CrossCultDoc) -> str:
    """Returns the prompt as one text, for models without a system message: Figure 9, then the question."""
    return f"{system_prompt(doc['language'])}\n{doc['question']}"


def messages(doc: Any) -> list[dict[str, Any]]:
    """Returns the system message of Figure 9, then image and question."""
    system = {"role": "system", "content": [text_part(system_prompt(doc["language"]))]}
    return Conversation([system, *user_message([image_part(visuals(doc)[0]), text_part(doc["question"])])])


def target(doc: CrossCultDoc) -> str:
    """Returns the reference answer; empty in locality."""
    return doc["reference"]
