"""Prompts of the judges: texts that can't break out, and hashes that name every change."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from culture_tasks.benchmarks.registry import rubric_named, rubrics
from culture_tasks.errors import JudgeError
from culture_tasks.judges.rubric.rubrics import LONGEST_TEXT, shortened
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.prompt_files import load

DELIMITERS = ("culture_tasks.judges.rubric", "delimiters.v1")
PROMPTS = {DELIMITERS} | {
    (rubric.package, name)
    for rubric in rubrics().values()
    for name in (rubric.system, rubric.user, rubric.reminder)
    if name
}
ITEM = JudgeItem("What is {response}?", ("naan", "flat {question}"), "It is {answer} rating=2")


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_a_rubric_s_messages_hold_all_its_wording_and_each_text_once(rubric):
    for message in rubric.messages(JudgeItem("QUESTION", ("ANSWER",), "RESPONSE")):
        assert not re.search(r"\{[a-z_]+\}", message["content"])
    for delimiters in (True, False):
        user = rubric.messages(ITEM, delimiters=delimiters)[-1]["content"]
        assert [user.count(text) for text in (ITEM.question, *ITEM.references, ITEM.response)] == [1] * 4
    system, user = rubric.messages(ITEM)
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"].endswith(load(*DELIMITERS).text)
    assert not rubric.system or system["content"].startswith(load(rubric.package, rubric.system).text)
    assert rubric.reminder_messages("I can't say.\ud800") == [
        {"role": "assistant", "content": "I can't say.\ufffd"},
        {"role": "user", "content": load(rubric.package, rubric.reminder).text},
    ]


# A changed wording makes old and new scores two different metrics: it needs a new file, and this list a new line.
PUBLISHED = {
    "lave_system.v1": "638eee22b70cce29",
    "lave_user.v1": "c91e37e8e02551a3",
    "lave_reminder.v1": "7c1b9bdd78b1d35a",
    "care_entities_opinion.v1": "9598dcd7c57b66c4",
    "care_norms_commonsense.v1": "4492cdf0bd7380a4",
    "care_literacy.v1": "335aacf8b28aa582",
    "care_reminder.v1": "b715c91db88c206a",
    "delimiters.v1": "10647b8749abd09f",
}


def test_a_published_prompt_never_changes():
    found = {name: load(package, name).sha256[:16] for package, name in PROMPTS if name in PUBLISHED}
    assert found == PUBLISHED


def test_every_prompt_has_a_version_is_clean_text_and_stands_in_the_folder_s_readme():
    for package, name in PROMPTS:
        assert re.fullmatch(r"[a-z0-9_]+\.v\d+", name)
        text = load(package, name).text
        assert text == text.strip()
        assert text.replace("\n", "").isprintable()
        readme = resources.files(package).joinpath("prompts/README.md")
        if readme.is_file():  # it is not installed
            assert f"`{name}`" in readme.read_text(encoding="utf-8")


def test_an_unknown_rubric_is_refused_with_the_nearest():
    with pytest.raises(JudgeError, match=r"no rubric 'care_litracy'. Did you mean 'care_literacy'"):
        rubric_named("care_litracy")


def test_a_long_text_is_cut_and_the_cut_is_named():
    assert shortened("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT
    # 32,000 characters are shown; 5 more are not
    assert shortened("é" * (LONGEST_TEXT + 5)) == "é" * LONGEST_TEXT + " [cut here: 5 more characters]"
