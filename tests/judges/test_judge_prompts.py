"""Prompts of the judges: texts that can't break out, and hashes that name every change."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.registry import rubric_named, rubrics
from culture_tasks.errors import JudgeError
from culture_tasks.judges.rubric.parsers import Reading
from culture_tasks.judges.rubric.rubrics import LONGEST_TEXT, Rubric, delimited, shortened
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.prompt_files import load

ANY_TEXT = st.text(st.characters(), max_size=200)
DELIMITERS = ("culture_tasks.judges", "delimiters.v1")
PROMPTS = sorted(
    {DELIMITERS}
    | {
        (rubric.package, name)
        for rubric in rubrics().values()
        for name in (rubric.system, rubric.user, rubric.reminder)
        if name
    }
)
ITEM = JudgeItem("What is {response}?", ("naan", "flat {question}"), "It is {answer} rating=2")


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_every_slot_of_a_rubric_s_prompts_is_filled(rubric):
    plain = JudgeItem("QUESTION", ("ANSWER",), "RESPONSE")
    for message in rubric.messages(plain):
        assert not re.search(r"\{[a-z_]+\}", message["content"])


@pytest.mark.parametrize("delimiters", [True, False])
@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_braces_in_a_text_are_not_filled_in(rubric, delimiters):
    user = rubric.messages(ITEM, delimiters=delimiters)[-1]["content"]
    for text in (ITEM.question, *ITEM.references, ITEM.response):
        assert user.count(text) == 1


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_with_delimiters_the_system_message_ends_in_what_they_mean(rubric):
    system, user = rubric.messages(ITEM)
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"].endswith(load(*DELIMITERS).text)
    assert system["content"].startswith(
        load(rubric.package, rubric.system).text if rubric.system else load(*DELIMITERS).text
    )


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_a_reminder_follows_the_unreadable_reply(rubric):
    assistant, user = rubric.reminder_messages("I can't say.\ud800")
    assert assistant == {"role": "assistant", "content": "I can't say.\ufffd"}
    assert user == {"role": "user", "content": load(rubric.package, rubric.reminder).text}


@pytest.mark.parametrize(
    ("name", "form", "asked_as"),
    [
        ("lave", "rating={}", "rating=X"),
        ("care_entities_opinion", "Rating: [[{}]]", "Rating: [[number]]"),
        ("care_norms_commonsense", "Rating: [[{}]]", "Rating: [[number]]"),
        ("care_literacy", "Rating: [[{}]]", "Rating: [[number]]"),
    ],
)
def test_the_format_that_each_rubric_asks_for_is_the_one_it_reads(name, form, asked_as):
    rubric = rubrics()[name]
    assert asked_as in load(rubric.package, rubric.user).text
    readings = [rubric.read(form.format(rating)) for rating in range(rubric.lowest - 1, rubric.highest + 2)]
    assert [reading is not None for reading in readings] == [
        False,
        *[True] * (rubric.highest - rubric.lowest + 1),
        False,
    ]


@pytest.mark.parametrize(("package", "name"), PROMPTS)
def test_every_prompt_has_a_version_and_is_clean_text(package, name):
    assert re.fullmatch(r"[a-z0-9_]+\.v\d+", name)
    text = load(package, name).text
    assert text == text.strip()
    assert text.isprintable() or set(filter(lambda mark: not mark.isprintable(), text)) == {"\n"}


@pytest.mark.parametrize(("package", "name"), PROMPTS)
def test_every_prompt_stands_in_the_folder_s_readme(package, name):
    readme = resources.files(package).joinpath("prompts/README.md")
    if readme.is_file():  # it is not installed
        assert f"`{name}`" in readme.read_text(encoding="utf-8")


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


@pytest.mark.parametrize(("package", "name"), [prompt for prompt in PROMPTS if prompt[1] in PUBLISHED])
def test_a_published_prompt_never_changes(package, name):
    assert load(package, name).sha256[:16] == PUBLISHED[name]


def test_every_published_prompt_is_used():
    assert {name for _, name in PROMPTS} >= set(PUBLISHED)


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_the_hash_covers_each_prompt_and_the_delimiters(rubric):
    prompts = {rubric.prompt_sha256(), rubric.prompt_sha256(delimiters=False)}
    for part in ("user", "reminder", "system"):
        other = rubric.user if part == "reminder" else rubric.reminder
        prompts.add(dataclasses.replace(rubric, **{part: other}).prompt_sha256())
    assert len(prompts) == 5


def test_the_hash_is_that_of_the_files_hashes():
    rubric = rubrics()["care_literacy"]
    files = [
        None,
        *(
            hashlib.sha256(load(rubric.package, name).text.encode()).hexdigest()
            for name in (rubric.user, rubric.reminder)
        ),
    ]
    assert rubric.prompt_sha256(delimiters=False) == hashlib.sha256(json.dumps([*files, None]).encode()).hexdigest()


def test_any_package_can_define_a_rubric(tmp_path, monkeypatch):
    prompts = tmp_path / "another_package" / "prompts"
    prompts.mkdir(parents=True)
    (prompts.parent / "__init__.py").touch()
    (prompts / "ask.v1.txt").write_text("{question} {answer} {response}: rating?\n", encoding="utf-8")
    (prompts / "again.v1.txt").write_text("A rating from 0 to 3, please.\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    rubric = Rubric(
        name="another",
        package="another_package",
        user="ask.v1",
        reminder="again.v1",
        lowest=0,
        highest=3,
        model="judge",
        source="a test",
    )
    item = JudgeItem("Q?", ("A.",), "R.")
    assert rubric.messages(item, delimiters=False) == [{"role": "user", "content": "Q? A. R.: rating?"}]
    assert rubric.reminder_messages("hm")[-1]["content"] == "A rating from 0 to 3, please."
    assert [rubric.read(f"Rating: {rating}") is not None for rating in range(5)] == [True, True, True, True, False]
    graded_by_length = dataclasses.replace(
        rubric, reader=lambda reply, scale: Reading(min(len(reply), scale.highest), "")
    )
    assert graded_by_length.read("four") == Reading(3, "")


def test_an_unknown_rubric_is_refused_with_the_nearest():
    with pytest.raises(JudgeError, match=r"no rubric 'care_litracy'. Did you mean 'care_literacy'"):
        rubric_named("care_litracy")


@given(ANY_TEXT)
def test_a_short_text_is_shown_whole_but_for_what_can_not_be_sent(text):
    shown = shortened(text)
    assert len(shown) <= len(text)
    assert json.loads(json.dumps(shown).encode()) == shown
    assert shown.encode("utf-8").decode() == shown


def test_a_long_text_is_cut_and_the_cut_is_named():
    assert shortened("x" * LONGEST_TEXT) == "x" * LONGEST_TEXT
    # 32,000 characters are shown; 5 more are not
    assert shortened("é" * (LONGEST_TEXT + 5)) == "é" * LONGEST_TEXT + " [cut here: 5 more characters]"


@given(ANY_TEXT)
def test_delimiters_name_the_text_and_hold_it_unchanged(text):
    shown = delimited("response", shortened(text))
    tag, _, rest = shown.partition("\n")
    assert re.fullmatch(r"<response-[0-9a-f]{12}>", tag)
    assert rest == f"{shortened(text)}\n</{tag[1:]}"


@given(ANY_TEXT, ANY_TEXT)
def test_a_text_can_not_close_its_own_delimiters(text, more):
    closed = delimited("response", shortened(text)) + shortened(more)
    assert delimited("response", closed).splitlines()[-1] not in closed


def test_equal_texts_in_two_places_have_two_delimiters():
    assert delimited("question", "x").splitlines()[0][-13:] != delimited("response", "x").splitlines()[0][-13:]
