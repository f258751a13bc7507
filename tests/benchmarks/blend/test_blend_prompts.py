"""The English prompts are the paper's to the byte; the others are read from the authors' files."""

from __future__ import annotations

from culture_tasks.benchmarks.blend.documents import PAPER_NAMES, WORDINGS, english_prompt, local_prompt
from culture_tasks.benchmarks.blend.regions import REGIONS

ENGLISH = {
    "inst": (
        "inst_4.en.v1",
        "Read the following question and provide a single answer without any explanations.\n\n"
        "Question: {question}\nAnswer:",
    ),
    "pers": (
        "pers_3.en.v1",
        "You are a person from {region} who is trying to explain your country's culture to a foreigner. Answer the "
        "following question, providing a single answer without any explanations.\n\n{question}",
    ),
}


def test_the_english_prompts_are_those_of_the_paper():
    assert {
        wording: (prompt.name, prompt.text) for wording in WORDINGS for prompt in [english_prompt(wording)]
    } == ENGLISH
    assert PAPER_NAMES == {"inst": "inst-4", "pers": "pers-3"}


def test_a_prompt_in_another_language_is_the_file_s_own_text(fixture_data):
    for region in [region for region in REGIONS if region.language != "en"]:
        file = (fixture_data / "blend" / "prompts" / f"{region.name}_prompts.csv").read_text(encoding="utf-8")
        for wording in WORDINGS:
            prompt = local_prompt(region, wording, fixture_data)
            assert prompt.name == f"{PAPER_NAMES[wording].replace('-', '_')}.{region.slug}"
            assert prompt.text in file
            assert prompt.text.count("{q}") == 1
