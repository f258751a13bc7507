"""What the evaluated model is asked (CulturalVQA, section 5, Appendices H and I)."""

from __future__ import annotations

from culture_tasks.benchmarks.culturalvqa.documents import CulturalVqaDoc, Variant
from culture_tasks.benchmarks.interface import Picture, Prompt
from culture_tasks.prompt_files import load


def render(variant: Variant, doc: CulturalVqaDoc) -> Prompt:
    """Returns the prompt for a question.

    The image stands before the text (Appendix H). The few-shot prompt shows examples of image, question and answer,
    each on a line, then image and question (Appendix I).
    """
    file = load(__package__, f"{variant}.v1")
    if variant == "fewshot":
        shown = [(Picture(each["row"]), f"{each['question']}\n{each['answer']}") for each in doc["examples"]]
        examples = [part for example in shown for part in example]
        return Prompt((file.text, *examples, Picture(), doc["question"]))
    values = {"question": doc["question"]}
    if variant == "country":
        values["country"] = doc["country_name"]
    elif variant == "lens":
        values["entities"] = doc["entities"]
    text = file.fill(values)
    return Prompt((Picture(), text) if variant == "vlm" else (text,))
