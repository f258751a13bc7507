"""BLEnD: which questions are asked and how, and SEM by both matchers, with stand-ins for the packages."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import pytest

from culture_tasks.benchmarks.blend import benchmark, official
from culture_tasks.benchmarks.blend.benchmark import Hit, cleaned, first_hit, metrics, score, token_match
from culture_tasks.benchmarks.blend.official import official_match, require
from culture_tasks.benchmarks.blend.questions import REGIONS, load_choices
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import CultureTasksError, DataError, MissingExtraError
from culture_tasks.settings import Settings

NOBODY = {"idk": 0, "no-answer": 0, "not-applicable": 0}
ENTRY = {
    "question": "{q} {question}?",
    "en_question": "What do people in your country drink in the morning?",
    "annotations": [
        {"answers": ["우유"], "en_answers": ["milk"], "count": 1},
        {"answers": ["커피"], "en_answers": ["coffee"], "count": 3},
    ],
    "idks": NOBODY,
}
PROMPT = 'id,English,Translation\ninst-4,Answer. {q},"답하세요.\n\n질문: {q}\n답: "\n'


@pytest.fixture
def folder(tmp_path):
    """Returns what writes the files of South Korea and gives the data folder."""

    def put(**entries):
        for path, text in (
            ("annotations/South_Korea_data.json", json.dumps(entries)),
            ("questions/South_Korea_questions.csv", "\n".join(["ID,Topic", *(f"{name},Food" for name in entries)])),
            ("prompts/South_Korea_prompts.csv", PROMPT),
        ):
            (tmp_path / "blend" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "blend" / path).write_text(text, encoding="utf-8")
        return tmp_path

    return put


def load(folder, task="blend"):
    return task_named(task).data.load(Settings(data=folder)).rows


def test_there_are_16_regions_in_13_languages_with_7422_valid_questions():
    languages = {region.language for region in REGIONS}
    assert (len(REGIONS), len(languages), sum(region.valid for region in REGIONS)) == (16, 13, 7422)


def test_a_document_asks_in_the_region_s_language_or_in_english_where_only_english_answers_count(folder):
    (doc,), (english,) = load(folder(Q1=ENTRY)), load(folder(Q1=ENTRY), "blend_en_pers")
    assert doc["prompt"] == "답하세요.\n\n질문: {q} {question}?\n답: "  # the question has no slots
    assert (doc["id"], doc["question_id"], doc["region"]) == ("south_korea-Q1", "Q1", "South Korea")
    assert (doc["language"], doc["topic"], doc["prompt_name"]) == ("ko", "food", "inst_4.south_korea")
    assert [votes["count"] for votes in doc["annotations"]] == [3, 1]  # in the order of votes
    start = "You are a person from South Korea who is trying to explain your country's culture"
    assert english["prompt"].startswith(start)
    assert english["prompt"].endswith("\n\nWhat do people in South Korea drink in the morning?")
    assert [votes["answers"] for votes in english["annotations"]] == [[], []]
    assert (english["language"], english["prompt_name"]) == ("en", "pers_3.en.v1")
    assert [task_named("blend").target(each) for each in (doc, english)] == ["커피", "coffee"]


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({"idks": NOBODY | {"idk": 4, "no-answer": 1, "not-applicable": 1}}, True),
        ({"idks": NOBODY | {"no-answer": 2, "not-applicable": 1}}, False),
        ({"idks": NOBODY | {"it depends on the town": 9}}, True),
        ({"idks": NOBODY | {"idk": 5, "other": [], "don't know the name": None}}, False),
        ({"annotations": []}, False),
    ],
)
def test_a_question_is_valid_if_enough_people_had_an_answer(folder, change, valid):
    asked = [doc["question_id"] for doc in load(folder(Q1=ENTRY, Q2=ENTRY | change))]
    assert asked == ["Q1", "Q2"][: 1 + valid]
    if not valid:
        with pytest.raises(DataError, match="no question is valid"):
            load(folder(Q2=ENTRY | change))


def test_the_regions_in_the_user_s_folder_are_asked_by_turns_and_the_others_are_named(folder, fixture_data, caplog):
    data = folder(Q1=ENTRY, Q2=ENTRY)
    for name in ("annotations/China_data.json", "questions/China_questions.csv", "prompts/China_prompts.csv"):
        shutil.copy(fixture_data / "blend" / name, data / "blend" / name)
    for task in ("blend", "blend_en"):
        with caplog.at_level(logging.WARNING):
            docs = load(data, task)
        assert [doc["region"] for doc in docs] == ["China", "South Korea", "China", "South Korea", "China"]
        assert "these regions aren't asked: Algeria, Assam, Azerbaijan, Ethiopia, Greece" in caplog.text


def test_multiple_choice_questions_load_from_one_file_or_from_its_parts(fixture_data, tmp_path):
    documents = load_choices(Settings(data=fixture_data)).rows
    doc = documents[0]
    assert (doc["id"], doc["question_id"], doc["region"]) == ("Toy-01_0", "Toy-01", "Algeria")
    assert doc["answer"] in dict(doc["choices"])
    header, *rows = (fixture_data / "blend" / "mc_questions_file.csv").read_text("utf-8").split("\nToy-")
    (tmp_path / "blend").mkdir()
    for number, part in ((1, rows[:9]), (2, rows[9:])):
        text = "\nToy-".join([header, *part]) + "\n"
        (tmp_path / "blend" / f"mc_questions_file-{number}.csv").write_text(text, "utf-8")
    assert load_choices(Settings(data=tmp_path)).rows == documents


# Scores

VOTES = [
    {"answers": ["쌀밥", "밥"], "en_answers": ["rice"], "count": 4},
    {"answers": ["김치"], "en_answers": ["kimchi"], "count": 3},
    {"answers": ["라면"], "en_answers": ["ramen", "instant noodles"], "count": 1},
]
BOTH = [{"answers": ["a1"], "en_answers": ["b1"], "count": 2}, {"answers": ["b1"], "en_answers": [], "count": 1}]
ASKED = "Read.\n\nQuestion: What do children eat?\nAnswer:"


@pytest.mark.parametrize(
    ("votes", "response", "hit"),
    [
        (VOTES, "밥", Hit("밥", 1.0)),
        (VOTES, "라면과 김치", Hit("김치", 3 / 4)),  # both are in it: the one with more votes counts
        (VOTES, "빵", None),
        (VOTES, cleaned(".", ASKED), None),
        (BOTH, "b1", Hit("b1", 1.0)),  # English, but of the answer with more votes
        (BOTH, "b1 a1", Hit("a1", 1.0)),  # of equal votes, the local answers come first
    ],
)
def test_the_first_hit_in_the_order_of_votes_counts(votes, response, hit):
    assert first_hit(votes, response, "ko", token_match) == hit


CLEANED = {
    "ANSWER:\n\nRice.": "rice",
    f"{ASKED} Rice": "rice",
    "Rice。": "rice",
    "rice、kimchi，soup": "rice,kimchi,soup",
    "Food: rice": "food: rice",  # no word of the prompt
    "It is the answer: rice": "it is the answer: rice",  # not at the start
    "Answer:rice": "answer:rice",  # without a blank it is no label
    "...rice...": "rice",
}


def test_a_response_is_cleaned_as_in_the_paper():
    assert {response: cleaned(response, ASKED) for response in CLEANED} == CLEANED


MATCHES = [
    ("table tennis", "they play table-tennis", True),
    ("soy milk", "milk of soy", True),  # the same tokens
    ("Çay", "qara çay", True),
    ("القَهوة", "القهوة العربية", True),
    ("豆浆", "热豆浆和油条", True),
    ("ড়", "\u09dc", True),
    ("İt", "qara it", True),
    ("نان و چاي", "چای و نان", True),
    ("۱۲ ساعت", "12 ساعت", True),
    ("soy milk", "milk", False),
    ("কলা", "কল্ড ড্ৰিংক", False),  # one word's letters without its vowel signs
    ("?!", "what?!", False),
]


def test_an_answer_is_in_a_response_or_not():
    assert [row for row in MATCHES if token_match(*row[:2], "xx") != row[2]] == []


def test_repeated_runs_are_averaged_and_reasoning_is_no_answer(fixture_data, monkeypatch):
    doc = next(doc for doc in load(fixture_data) if doc["region"] == "South Korea")  # coffee 4, milk 1
    answered = score(doc, ["커피", "우유", "물", "<think>커피</think>물"], official=False)
    assert (answered.score, answered.values) == (2 / 4, {"sem_w": (1 + 1 / 4) / 4})
    assert answered.labels == ("커피", "우유", "", "")
    monkeypatch.setattr(benchmark, "official_match", lambda answer, response, language: answer == "milk")
    answered = score(doc, ["커피"], official=True)
    assert (answered.score, answered.values) == (1.0, {"sem_w_official": 1 / 4, "sem_b": 1.0, "sem_w": 1.0})
    assert set(answered.values) == {metric.name for metric in metrics(official=True)[1:]}


# The paper's matcher


@pytest.fixture
def installed(monkeypatch):
    """Returns what puts a module into the place of a package; lemmatisers that other tests made are forgotten."""

    def put(name, **contents):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            module = ModuleType(".".join(parts[:length]))
            monkeypatch.setitem(sys.modules, module.__name__, module)
        vars(module).update(contents)

    def forget():
        official._thread.submit(vars, official._lemmatisers).result().clear()
        official._lemmas.cache_clear()

    forget()
    yield put
    forget()


def test_an_answer_is_a_part_of_the_response_or_every_lemma_is_in_it(installed):
    def words_without_s(text):
        return [SimpleNamespace(lemma_=word.removesuffix("s")) for word in text.split()]

    installed("spacy", load=lambda name: words_without_s)
    assert official_match("soy-milk", "soy milk", "en")
    assert official_match("soy milk", "some soy-milk", "en")
    assert official_match("Boiled Eggs", "egg boiled hard", "en")  # only lemmas are compared in lower case
    assert not official_match("Boiled Eggs", "boiled potato", "en")
    assert official_match("? Cafés", "cafe au lait", "en")  # without accents and punctuation
    assert official_match("?", "tea", "en")  # no lemma at all, as in the original


def test_one_thread_lemmatises_and_for_arabic_looks_for_the_characters_of_the_first_word_s_lemma(installed):
    threads = set()

    class Lemmatizer:
        def lemmatize(self, text):
            threads.add(threading.get_ident())
            return text.split()[0] if text else ""

    installed("qalsadi.lemmatizer", Lemmatizer=Lemmatizer)
    assert official_match("abc xyz", "cab", "ar")  # as in the original
    assert not official_match("abd xyz", "cab", "ar")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: official_match(f"{number}", "b", "ar"), range(8)))
    assert len(threads - {threading.get_ident()}) == len(threads) == 1


def test_for_other_languages_words_or_stems_are_compared(installed):
    okt = SimpleNamespace(
        pos=lambda text: [(word, "Josa" if word == "를" else "Noun") for word in text.split()],
        morphs=lambda text, stem: text.split() if stem else [],
    )
    installed("konlpy.tag", Okt=lambda: okt)
    installed("jieba", cut=lambda text: iter(text.split()), setLogLevel=lambda level: None)
    installed("indicnlp.tokenize.indic_tokenize", trivial_tokenize=lambda text: text.split())
    installed("hausastemmer", stem=lambda word: word[:4])
    assert official_match("를 김치 밥", "밥 x 김치", "ko")  # without particles
    assert official_match("豆浆 茶", "茶 和 豆浆", "zh")
    assert official_match("ভাত মাছ", "মাছ আৰু ভাত", "as")
    assert official_match("gidaje", "gidan -gida-", "ha")


def test_what_is_missing_is_named_with_how_to_install_it(installed, monkeypatch):
    def fails(*_):
        raise RuntimeError("No JVM shared library file found")

    monkeypatch.setitem(sys.modules, "indicnlp", None)
    with pytest.raises(MissingExtraError, match=r"for Assamese needs the package 'indic-nlp-library'.*tasks\[blend\]"):
        require("as")
    installed("konlpy.tag", Okt=fails)
    installed("spacy", load=fails)
    for language, said in (("ko", "Korean can't be started .No JVM.* JAVA_HOME"), ("en", "download en_core_web_sm")):
        with pytest.raises(CultureTasksError, match=said):
            require(language)
