import json

from culture_tasks.benchmarks.care.ratings import HUMAN_RATINGS
from culture_tasks.people.rated_responses import NO_CATEGORY, language_of
from culture_tasks.people.rated_responses import load as load_responses
from culture_tasks.settings import Settings

CARE_ROW = {
    "question": "端午节吃什么？",
    "answer": "粽子",
    "response": "月饼",
    "human_rating": 3,
    "source": "LLM",
    "cul_type": "Cultural entities",
    "associated_culture": "Native (Chinese)",
}
OWN_ROW = {"question": "q", "reference": "r", "response": "s", "human_rating": 7.5, "rubric": "care_literacy"}


def load(data, folder, **options):
    return load_responses(data, Settings(data=folder), **options)


def saved(folder, rows, name="rows.jsonl"):
    path = folder / name
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def test_cares_layout_in_a_file_and_in_the_data_folder(tmp_path):
    loaded = load(saved(tmp_path, [CARE_ROW]), None)
    (response,) = loaded.responses
    assert loaded.like is HUMAN_RATINGS
    [graded] = load(saved(tmp_path, [CARE_ROW | {"human_rating": 2}]), None, rubric="lave").responses
    assert graded.rubric == "lave"
    assert (response.row, response.human, response.rubric) == (1, 3.0, "care_entities_opinion")
    assert (response.category, response.language) == ("entities", "zh")
    assert (response.item.question, response.item.references) == (CARE_ROW["question"], ("粽子",))
    (tmp_path / "care_ratings").mkdir()
    saved(tmp_path / "care_ratings", [CARE_ROW | {"translated_question (optional)": "What?"}], "train.jsonl")
    loaded = load("care", tmp_path)
    assert loaded.like is HUMAN_RATINGS
    assert loaded.origin.endswith("train.jsonl")


def test_a_file_of_ones_own(tmp_path):
    rows = [OWN_ROW, OWN_ROW | {"reference": ["a", "s"], "language": "sw", "category": "=food|"}]
    loaded = load(saved(tmp_path, rows), None)
    first, second = loaded.responses
    assert (loaded.like, loaded.verbatim) == (None, 1)
    assert (first.category, first.language, first.rubric) == (NO_CATEGORY, "und", "care_literacy")
    assert (second.category, second.language, second.item.references) == ("=food|", "sw", ("a", "s"))


def test_a_sample_is_drawn_by_the_seed(tmp_path):
    path = saved(tmp_path, [OWN_ROW | {"question": f"q{number}"} for number in range(50)])
    draws = [load(path, None, sample=10, seed=seed) for seed in (1, 1, 2)]
    rows = [[one.row for one in draw.responses] for draw in draws]
    assert rows[0] == rows[1] == sorted(set(rows[0]))
    assert rows[0] != rows[2]
    assert draws[0].fingerprint == draws[1].fingerprint != draws[2].fingerprint
    assert len(load(path, None, sample=99).responses) == 50


def test_the_language_is_that_of_the_column_the_culture_or_the_script():
    for text, column, culture, language in (
        ("a question in no such script", None, "Native (Chinese)", "zh"),
        ("a question in no such script", None, "native - Japanese", "ja"),
        ("قهوة وتمر", None, "Foreign (Japanese)", "ar"),
        ("قهوة وتمر", "pt_BR", None, "pt"),
        ("源氏物語の作者は誰", None, None, "ja"),
        ("端午节吃什么", None, None, "zh"),
        ("日本人说的“侘び”在中文里怎么翻译", None, None, "zh"),
        ("What does the word 茶 mean?", None, None, "und"),
    ):
        assert language_of(text, language=column, culture=culture) == language, text
