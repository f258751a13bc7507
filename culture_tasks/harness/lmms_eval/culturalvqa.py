"""CulturalVQA's hooks for lmms-eval, for its chat and its simple model types."""

from __future__ import annotations

from functools import partial
from typing import Any

from culture_tasks.benchmarks.culturalvqa.documents import CulturalVqaDoc, Variant
from culture_tasks.benchmarks.culturalvqa.prompts import example_text, instruction, render
from culture_tasks.harness import culturalvqa
from culture_tasks.harness.culturalvqa_examples import example_images, examples_of
from culture_tasks.harness.lmms_eval.documents import documents
from culture_tasks.harness.lmms_eval.images import only_of_seen, watched
from culture_tasks.harness.lmms_eval.messages import Part, image_part, text_part, user_message

docs_vlm = documents("culturalvqa")
docs_lave3 = documents("culturalvqa_lave3")
docs_fewshot = documents("culturalvqa_fewshot")
docs_blind = documents("culturalvqa_blind")
docs_country = documents("culturalvqa_country")
docs_lens = documents("culturalvqa_lens")

metric_list = culturalvqa.metrics()
metric_list_lave3 = culturalvqa.metrics("lave3")

process_results = only_of_seen(culturalvqa.results)
process_lave3 = only_of_seen(partial(culturalvqa.results, rubric="lave3"))

text_vlm = partial(render, "vlm")
text_blind = partial(render, "blind")
text_country = partial(render, "country")
text_lens = partial(render, "lens")


def _text_messages(variant: Variant, doc: CulturalVqaDoc) -> list[dict[str, Any]]:
    return user_message([text_part(render(variant, doc))])


messages_blind = partial(_text_messages, "blind")
messages_country = partial(_text_messages, "country")
messages_lens = partial(_text_messages, "lens")


def _image(doc: Any) -> Any:
    return doc["image"].convert("RGB")


def visuals(doc: Any) -> list[Any]:
    """Returns the question's image."""
    return watched(doc, [_image(doc)])


def messages_vlm(doc: Any) -> list[dict[str, Any]]:
    """Returns the image and the prompt of Appendix H."""
    return user_message([image_part(visuals(doc)[0]), text_part(render("vlm", doc))])


def visuals_fewshot(doc: Any) -> list[Any]:
    """Returns the examples' images, then the question's."""
    return watched(doc, [*example_images(doc), _image(doc)])


def text_fewshot(doc: CulturalVqaDoc) -> str:
    """Returns the prompt of Appendix I for models that put all images before the text: each example names its image."""
    examples = examples_of(doc)
    shown = [f"Image {number}:\n{example_text(example)}" for number, example in enumerate(examples, start=1)]
    return "\n".join([instruction(), *shown, f"Image {len(examples) + 1}:\n{doc['question']}"])


def messages_fewshot(doc: Any) -> list[dict[str, Any]]:
    """Returns the prompt of Appendix I: examples of image, question and answer, then image and question."""
    parts: list[Part] = [text_part(instruction())]
    shown = [*(example_text(example) for example in examples_of(doc)), doc["question"]]
    for image, text in zip(visuals_fewshot(doc), shown, strict=True):
        parts += [image_part(image), text_part(text)]
    return user_message(parts)


def target(doc: CulturalVqaDoc) -> list[str]:
    """Returns the reference answers."""
    return doc["references"]
