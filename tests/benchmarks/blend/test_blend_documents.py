"""BLEnD's questions: prompts, both layouts of the release, validity, both languages, refusals, and the check."""

from __future__ import annotations

import json
import logging
import shutil

import datasets
import pandas
import pytest

from culture_tasks.benchmarks.blend.benchmark import BENCHMARK
from culture_tasks.benchmarks.blend.questions import REGIONS, TOPICS, english_prompt, load_choices, load_questions
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.data import tables
from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError, DataUnavailableError
from culture_tasks.settings import Settings

KOREA = next(region for region in REGIONS if region.code == "KR")

NOBODY = {"idk": 0, "no-answer": 0, "not-applicable": 0}
ENTRY = {
    "question": "아침에 무엇을 마시나요?",
    "en_question": "What do people in your country drink in the morning?",
    "annotations": [
        {"answers": ["커피"], "en_answers": ["coffee"], "count": 3},
        {"answers": ["우유"], "en_answers": ["milk"], "count": 1},
    ],
    "idks": NOBODY,
}
TOPIC = {"ID": "Q1", "Topic": "Food", "Source": "Korean", "Question": "x", "Translation": "y"}
PROMPT = {"id": "inst-4", "English": "Answer. {q}", "Translation": "답하세요.\n\n질문: {q}\n답: ", "G-Translation": "y"}
CHOICE = {
    "MCQID": "Q1_0",
    "ID": "Q1",
    "country": "South_Korea",
    "prompt": 'What? {"answer_choice":""}\n\nA. coffee\nB. tea\n\nAnswer:',
    "choices": '{"A": "coffee", "B": "tea"}',
    "answer_idx": "A",
}


def load(region, folder, wording="inst-4", english=False):
    return load_questions([region], wording, Settings(data=folder), english=english).rows


def check(folder):
    return BENCHMARK.check(Settings(data=folder))


@pytest.fixture
def folder(tmp_path):
    """Returns what writes the files of South Korea and gives the data folder."""

    def put(annotations, questions=(TOPIC,), prompts=(PROMPT,), choices=()):
        blend = tmp_path / "blend"
        for name in ("annotations", "questions", "prompts"):
            (blend / name).mkdir(parents=True, exist_ok=True)
        text = json.dumps(annotations, ensure_ascii=False)
        (blend / "annotations" / "South_Korea_data.json").write_text(text, encoding="utf-8")
        for path, rows in (
            ("questions/South_Korea_questions.csv", questions),
            ("prompts/South_Korea_prompts.csv", prompts),
            ("mc_questions_file.csv", choices),
        ):
            if rows:
                pandas.DataFrame(rows).to_csv(blend / path, index=False)
        return tmp_path

    return put


def refused(read, *arguments):
    with pytest.raises(DataError) as caught:
        read(*arguments)
    return str(caught.value)


def test_there_are_16_regions_in_13_languages_with_7422_valid_questions():
    languages = {region.language for region in REGIONS}
    assert (len(REGIONS), len(languages), sum(region.valid for region in REGIONS)) == (16, 13, 7422)


def test_the_english_prompts_are_those_of_the_paper():
    assert {english_prompt(wording).name: english_prompt(wording).text for wording in ("inst-4", "pers-3")} == {
        "inst_4.en.v1": "Read the following question and provide a single answer without any explanations.\n\n"
        "Question: {question}\nAnswer:",
        "pers_3.en.v1": "You are a person from {region} who is trying to explain your country's culture to a "
        "foreigner. Answer the following question, providing a single answer without any explanations.\n\n{question}",
    }


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.code)
def test_the_bundled_questions_load_in_both_languages_and_wordings(fixture_data, region):
    ways = {}, {"english": True}, {"wording": "pers-3"}
    native, english, person = (load(region, fixture_data, **way) for way in ways)
    assert [doc["id"] for doc in native] == [doc["id"] for doc in english] == [doc["id"] for doc in person]
    assert len(native) == 3  # the fourth is no valid question
    assert all(doc["question"] in doc["prompt"] and "{" not in doc["prompt"] for doc in (*native, *english, *person))
    assert all(doc["language"] == "en" and not any(v["answers"] for v in doc["annotations"]) for doc in english)
    assert {doc["language"] for doc in native} == {region.language}
    assert {doc["topic"] for doc in native} <= set(TOPICS)
    assert (native == english) == (region.language == "en")


def test_a_document_asks_in_the_region_s_language_with_the_authors_prompt(folder):
    (doc,) = load(KOREA, folder({"Q1": ENTRY}))
    assert doc["prompt"] == "답하세요.\n\n질문: 아침에 무엇을 마시나요?\n답: "  # the blank at the end is the authors'
    assert (doc["id"], doc["question_id"], doc["region"]) == ("south_korea-Q1", "Q1", "South Korea")
    assert (doc["language"], doc["topic"], doc["prompt_name"]) == ("ko", "food", "inst_4.south_korea")
    assert doc["annotations"] == ENTRY["annotations"]  # in the order of votes
    (again,) = load(KOREA, folder([{"ID": "Q1", **ENTRY, "annotations": ENTRY["annotations"][::-1]}]))
    assert again | {"data": ""} == doc | {"data": ""}  # a list of rows, as the Hub has it
    (doc,) = load(KOREA, folder({"Q1": ENTRY | {"question": "{q} {question}?"}}))
    assert doc["prompt"] == "답하세요.\n\n질문: {q} {question}?\n답: "  # the question has no slots


def test_in_english_the_region_is_named_and_only_english_answers_count(folder):
    (doc,) = load(KOREA, folder({"Q1": ENTRY}, prompts=()), wording="pers-3", english=True)
    assert doc["prompt"] == (
        "You are a person from South Korea who is trying to explain your country's culture to a foreigner. Answer the "
        "following question, providing a single answer without any explanations.\n\n"
        "What do people in South Korea drink in the morning?"
    )
    assert [votes["answers"] for votes in doc["annotations"]] == [[], []]
    assert (doc["language"], doc["prompt_name"]) == ("en", "pers_3.en.v1")


@pytest.mark.parametrize(("english_answers", "target"), [(["coffee", "latte"], "coffee"), ([], "")])
def test_the_target_is_the_first_answer_with_most_votes(folder, english_answers, target):
    votes = [{**ENTRY["annotations"][0], "en_answers": english_answers}, ENTRY["annotations"][1]]
    (doc,) = load(KOREA, folder({"Q1": {**ENTRY, "annotations": votes}}), english=True)
    assert task_named("blend_en").target(doc) == target


FIVE_DO_NOT_KNOW = {"idk": 5, "no-answer": 0, "not-applicable": 0}


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({"idks": NOBODY | {"idk": 4, "no-answer": 1, "not-applicable": 1}}, True),
        ({"idks": NOBODY | {"no-answer": 2, "not-applicable": 1}}, False),
        ({"idks": NOBODY | {"it depends on the town": 9}}, True),
        ({"idks": FIVE_DO_NOT_KNOW | {"other": [], "don't know the name": None}}, False),
        ({"idks": [list(pair) for pair in FIVE_DO_NOT_KNOW.items()]}, False),
        ({"idks": [{"count": count, "reason": reason} for reason, count in FIVE_DO_NOT_KNOW.items()]}, False),
        ({"annotations": []}, False),
    ],
)
def test_a_question_is_valid_if_enough_people_had_an_answer(folder, change, valid):
    other = folder({"Q1": ENTRY, "Q2": ENTRY | change}, [TOPIC, TOPIC | {"ID": "Q2"}])
    assert [doc["question_id"] for doc in load(KOREA, other)] == ["Q1", "Q2"][: 1 + valid]


def changed(**fields):
    return {"annotations": {"Q1": ENTRY | fields}}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"annotations": {"Q1": [1]}}, "data.json, row 1: found [1]. Expected an object"),
        (
            {"annotations": {"Q2": ENTRY}},
            "row 1, field 'ID': 'Q2' is not among the questions that have a topic",
        ),
        (changed(annotations=[]), "no question is valid"),
        (
            changed(annotations=[{"answers": ["a"], "en_answers": ["b"], "count": 0}]),
            "South_Korea_data.json, row 1, field 'annotations.0.count': found 0",
        ),
        (changed(idks={"idk": 0}), "'idks': found {'idk': 0}. Expected idk, no-answer, not-applicable, and"),
        (changed(idks=["idk"]), "field 'idks': found ['idk']"),
        (changed(idks=NOBODY | {"idk": "many"}), "field 'idks.idk': found 'many'"),
        (changed(votes=3), "unknown column 'votes'"),
        ({"questions": [TOPIC | {"Topic": "Foods"}]}, "row 2, field 'topic': found 'Foods'. Did you mean 'Food'?"),
        ({"prompts": []}, "blend: these data are not on the Hub. Put blend/prompts/South_Korea_prompts.json"),
        ({"prompts": [PROMPT | {"id": "inst-1"}]}, "no row with the id 'inst-4'"),
        ({"prompts": [PROMPT | {"Translation": "{ㅋ}"}]}, "row 2, field 'Translation': found '{ㅋ}'. Expected"),
        ({"prompts": [{"id": "inst-4", "English": "x {q}"}]}, "field 'Translation': found None"),
    ],
)
def test_what_does_not_fit_is_refused_by_file_row_and_field(folder, files, message):
    assert message in refused(load, KOREA, folder(**{"annotations": {"Q1": ENTRY}} | files))


def test_a_folder_of_prompts_alone_leaves_the_questions_to_the_hub(folder, monkeypatch):
    rows = {"annotations": [{"ID": "Q1", **ENTRY}], "short-answer-questions": [TOPIC | {"more": 1}]}

    def on_the_hub(name, config, split, revision, otherwise):
        assert (name, split) == ("nayeon212/BLEnD", "KR")
        return datasets.Dataset.from_list(rows[config]), DataReading()

    monkeypatch.setattr(tables, "load_split", on_the_hub)
    data = folder({"Q1": ENTRY})
    local = load(KOREA, data)
    (data / "blend" / "annotations" / "South_Korea_data.json").unlink()
    (data / "blend" / "questions" / "South_Korea_questions.csv").unlink()
    assert load(KOREA, data) == local


def test_multiple_choice_questions_load_from_one_file_or_from_its_parts(folder):
    data = folder({"Q1": ENTRY}, choices=[CHOICE, CHOICE | {"MCQID": "Q1_1", "country": "US"}])
    doc, other = load_choices(Settings(data=data)).rows
    assert (doc["id"], doc["question_id"], doc["region"], doc["answer"]) == ("Q1_0", "Q1", "South Korea", "A")
    assert (other["id"], other["region"]) == ("Q1_1", "US")
    assert (doc["prompt"], doc["choices"]) == (CHOICE["prompt"], [["A", "coffee"], ["B", "tea"]])
    whole = data / "blend" / "mc_questions_file.csv"
    second = whole.read_text(encoding="utf-8").replace("Q1_0", "Q1_2").replace("Q1_1", "Q1_3")
    (data / "blend" / "mc_questions_file-2.csv").write_text(second, encoding="utf-8")
    whole.rename(data / "blend" / "mc_questions_file-1.csv")
    assert [doc["id"] for doc in load_choices(Settings(data=data)).rows] == ["Q1_0", "Q1_1", "Q1_2", "Q1_3"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer_idx": "C"}, "found 'C'. Expected one of A, B"),
        ({"choices": "coffee, tea"}, "field 'choices': found 'coffee, tea'. Expected a JSON object"),
        ({"choices": '{"A": "coffee"}'}, "field 'choices'"),
        ({"country": "Japan"}, "field 'country': found 'Japan'. "),
    ],
)
def test_a_multiple_choice_question_that_does_not_fit_is_refused(folder, change, message):
    data = folder({"Q1": ENTRY}, choices=[CHOICE | change])
    assert message in refused(load_choices, Settings(data=data))


def test_the_regions_in_the_user_s_folder_are_asked_by_turns_and_the_others_are_named(folder, fixture_data, caplog):
    data = folder({"Q1": ENTRY, "Q2": ENTRY}, [TOPIC, TOPIC | {"ID": "Q2"}])
    for name in ("annotations/China_data.json", "questions/China_questions.csv", "prompts/China_prompts.csv"):
        shutil.copy(fixture_data / "blend" / name, data / "blend" / name)
    for task in ("blend", "blend_en"):
        with caplog.at_level(logging.WARNING):
            docs = task_named(task).data.load(Settings(data=data)).rows
        assert [doc["region"] for doc in docs] == ["China", "South Korea", "China", "South Korea", "China"]
        assert "these regions aren't asked: Algeria, Assam, Azerbaijan, Ethiopia, Greece" in caplog.text
    shutil.rmtree(data / "blend" / "prompts")
    assert "Put blend/prompts/China_prompts.json" in refused(task_named("blend").data.load, Settings(data=data))


# The check


@pytest.fixture
def copied(fixture_data, tmp_path):
    """A copy of the bundled questions that a test may change."""
    shutil.copytree(fixture_data / "blend", tmp_path / "blend")
    return tmp_path


def test_the_bundled_questions_are_usable_and_counted(fixture_data):
    report = check(fixture_data)
    assert report.usable
    found = {line.name: (line.found, line.paper) for line in report.counts}
    assert found["South Korea: questions"] == ("4", "500")
    assert found["South Korea: valid"] == ("3", "475")
    assert found["South Korea: multiple choice"] == ("2", None)
    assert len(found) == 3 * len(REGIONS)


def test_every_problem_is_told(copied, monkeypatch):
    def unreachable(name, config, *_):
        raise DataUnavailableError(f"{name} ({config}): no network")

    monkeypatch.setattr(tables, "load_split", unreachable)
    blend = copied / "blend"
    (blend / "annotations" / "UK_data.json").unlink()
    (blend / "prompts" / "UK_prompts.csv").unlink()
    (blend / "questions" / "Assam_questions.csv").unlink()
    (blend / "prompts" / "China_prompts.csv").unlink()
    greece = blend / "annotations" / "Greece_data.json"
    entries = json.loads(greece.read_text(encoding="utf-8"))
    entries["Toy-02"]["annotations"][0]["count"] = -1
    greece.write_text(json.dumps(entries), encoding="utf-8")
    mexico = blend / "annotations" / "Mexico_data.json"
    entries = json.loads(mexico.read_text(encoding="utf-8"))
    mexico.write_text(json.dumps(entries | {"Toy-99": entries["Toy-01"]}), encoding="utf-8")
    choices = blend / "mc_questions_file.csv"
    choices.write_text(choices.read_text(encoding="utf-8").replace(",US,", ",USA,", 1), encoding="utf-8")

    problems = check(copied).problems
    for part in (
        "nayeon212/BLEnD (annotations): ",
        "nayeon212/BLEnD (short-answer-questions): ",
        "Put blend/prompts/China_prompts.json",
        "Greece_data.json, row 2, field 'annotations.0.count': found -1",
        "Mexico_data.json, row 5, field 'ID': 'Toy-99' is not among the questions that",
        "field 'country': found 'USA'. ",
    ):
        assert sum(part in problem for problem in problems) == 1, part
    assert len(problems) == 6
