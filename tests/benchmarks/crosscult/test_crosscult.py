"""CrossCult-KIBench: raw cases, the split and the pairs of the paper's size, and what each task inserts and asks."""

from __future__ import annotations

from collections import Counter

import datasets
import pytest
from PIL import Image
from support.crosscult_cases import paper_sized, raw_cases, rows, write_folder

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.crosscult.benchmark import BENCHMARK
from culture_tasks.benchmarks.crosscult.documents import Release, open_release
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.vocabulary import LOCALITY_ROLES, SINGLE_ROLES
from culture_tasks.benchmarks.interface import Task
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

TOPICS = ("social", "religious", "ethical")
SIX = {f"s{number}": topic for number, topic in enumerate(TOPICS * 2)}


def released(folder, content):
    return open_release(Settings(data=write_folder(folder, content)))


# Raw cases


def test_parquet_with_embedded_images_is_written_out_once_by_content(tmp_path):
    home = tmp_path / "crosscult"
    home.mkdir()
    content = rows()
    for index, row in enumerate(content):
        row["image"] = Image.new("RGB", (12, 8), (index // 2 * 9, 0, 0))
    features = datasets.Features({name: datasets.Value("string") for name in content[0]} | {"image": datasets.Image()})
    datasets.Dataset.from_list(content, features=features).to_parquet(str(home / "cases.parquet"))
    files = open_release(Settings(data=tmp_path)).images(["0-0", "0-1", "1-0", "0-0"], 1_000)
    assert files[0] == files[1] == files[3] != files[2]
    with Image.open(files[2]) as image:
        assert image.convert("RGB").getpixel((0, 0)) == (9, 0, 0)


def test_the_nested_answer_of_figure_8_is_taken_apart(tmp_path):
    content = rows()
    for index, row in enumerate(content):
        row["qa"] = {name: row.pop(name) for name in list(row) if name.startswith(("question", "answer"))}
        row["qa"]["answer_china_zh_en"] = "No."
        row |= {"is_match": True, "has_obvious_error": False, "reason": "fits", "id": index, "split": ""}
    case = released(tmp_path, content).cases["3"]
    assert (case.scenario, case.topic, case.split, case.image) == ("scenario 1", "religious", None, "1_1.png")
    assert case.sample(PAPER["zh"]) == ("这个可以吗，1 1？", "不可以 1 1。")


def test_a_broken_image_is_named_when_it_is_needed_and_all_problems_by_the_check(tmp_path):
    content = rows()
    release = released(tmp_path, content)
    (tmp_path / "crosscult" / "2_1.png").write_bytes(b"no image")
    assert len(release.images(["0-0", "0-1"], 1_000)) == 2
    with pytest.raises(DataError, match=r"row 6, field 'image'"):
        release.images(["0-1", "2-1"], 1_000)
    content[1]["answer_china_zh"] = ""
    write_folder(tmp_path, content)
    (tmp_path / "crosscult" / "2_1.png").write_bytes(b"no image")
    report = BENCHMARK.check(Settings(data=tmp_path))
    assert [problem.split("row ")[1].split(",")[0] for problem in report.problems] == ["2", "6"]
    found = {line.name: line.found for line in report.counts}
    assert (found["raw cases"], found["scenarios of Religious Values"]) == ("11", "2")


# The draw


@pytest.fixture(scope="module")
def whole():
    return Release(paper_sized())


def test_the_counts_are_those_of_table_1_and_each_test_has_its_share_of_every_topic(whole):
    assert Counter(whole.split.values()) == {"train": 29, "single": 10, "sequential": 10}
    parts = Counter(whole.split[whole.cases[pair["case"]].scenario] for pair in whole.pairs["single"])
    assert parts == {"train": 11_600, "single": 4_000}
    assert len(whole.pairs["sequential"]) == 2_000
    shares = Counter((part, scenario.split()[0]) for scenario, part in whole.split.items())
    for part in ("single", "sequential"):
        assert [shares[part, topic] for topic in TOPICS] == [3, 4, 3]  # of 16, 19, 14
    assert sum(1 for _ in whole.diagnostic()) == 3 * 9_800
    trained = {doc["image_id"] for role in SINGLE_ROLES for doc in whole.single(role, train=True)}
    assert trained.isdisjoint(doc["image_id"] for role in SINGLE_ROLES for doc in whole.single(role))


def test_items_come_from_where_the_paper_says(whole):
    scenario = {case_id: case.scenario for case_id, case in whole.cases.items()}
    for pair in whole.pairs["single"]:
        case, other = pair["case"], scenario[pair["cross_scenario"]]
        assert pair["generality"] != case
        assert scenario[pair["generality"]] == scenario[case] != other
        assert whole.split[other] == whole.split[scenario[case]]
    for chain in whole.pairs["sequential"]:
        assert scenario[chain["generality"]] == scenario[chain["case"]]
        assert scenario[chain["case"]] not in {scenario[item] for item in chain["locality"]}
        assert len(set(chain["locality"])) == 3
    # both other partitions are drawn about equally
    drawn = Counter((pair["target"], pair["cross_language"]) for pair in whole.pairs["single"])
    assert set(drawn) == {("zh", "en"), ("zh", "ar"), ("ar", "en"), ("ar", "zh")}
    assert max(drawn.values()) < 1.1 * min(drawn.values())


def test_a_draw_is_that_of_earlier_versions_whatever_the_order_of_rows(tmp_path):
    release = released(tmp_path / "one", rows(6, 3))
    assert (release.data, release.draw) == ("3aa8957420bdde9b", "b80ce328917c30e9")
    turned = released(tmp_path / "two", rows(6, 3)[::-1])
    assert turned.split == release.split
    assert sorted(turned.pairs["single"], key=str) == sorted(release.pairs["single"], key=str)


def test_the_split_of_the_data_takes_precedence(tmp_path):
    content = rows()
    for index, row in enumerate(content):
        row["split"] = ("single", "sequential", "train")[index // 4]
    split = released(tmp_path / "all", content).split
    assert split == {f"scenario {number}": ("single", "sequential", "train")[number // 2] for number in range(6)}
    for row in content[10:]:
        del row["split"]
    with pytest.raises(DataError, match="5 of 6 scenarios have a value in the column 'split'"):
        released(tmp_path / "some", content)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (raw_cases(dict.fromkeys("abc", "social"), 2), "3 scenarios can't be split. Expected at least 4"),
        (raw_cases(SIX, 1), "has 1 cases, and .* Expected another case"),
        (
            raw_cases({"a": "social"}, 2, split="single"),
            "has 2 cases, and 0 of other scenarios are in its part 'single'",
        ),
    ],
)
def test_too_little_data(table, message):
    with pytest.raises(DataError, match=message):
        Release(table)


# Tasks

TASKS = {entry.name: entry for entry in BENCHMARK.entries() if isinstance(entry, Task)}


@pytest.fixture(scope="module")
def documents():
    """Documents of each task, without the images that its loader adds."""
    release = Release(raw_cases(SIX, 3))
    return {name: list(task.data.load.args[0](release)) for name, task in TASKS.items()}


def test_every_document_has_every_field_and_an_id_of_its_own_and_the_diagnostic_inserts_nothing(documents):
    for task, docs in documents.items():
        assert len({doc["id"] for doc in docs}) == len(docs) > 0
        for doc in docs:
            assert doc.keys() == docs[0].keys()
            assert bool(doc["reference"]) == (doc["role"] not in LOCALITY_ROLES)
            assert doc["language"] in TASKS[task].languages
    assert {(str(doc["insertions"]), doc["step"]) for doc in documents["crosscult_diagnostic"]} == {("[]", 0)}


@pytest.mark.parametrize(("group", "size"), [("single", 4), ("sequential", 9), ("retention", 12), ("diagnostic", 1)])
def test_the_groups_have_the_tasks_of_the_paper_s_tables_and_these_the_same_cases_in_the_same_order(
    documents, group, size
):
    tasks = registry.tasks_below(f"crosscult_{group}")
    cases = {tuple(doc["case_id"] for doc in documents[task.name]) for task in tasks}
    assert (len(tasks), len(cases)) == (size, 2 if group == "retention" else 1)  # which has two orders


def test_the_four_roles_of_a_case_insert_the_same_and_ask_what_the_paper_says(documents):
    one, two = documents["crosscult_single_reliability"][:2]
    assert one["image_id"] == two["image_id"] == one["insertion_image_id"]
    assert (one["partition"], two["partition"], one["case_id"]) == ("zh", "ar", f"{one['image_id']}:zh")
    assert one["insertions"] == [{"partition": "zh", "question": one["question"], "answer": one["reference"]}]
    for docs in zip(*(documents[f"crosscult_single_{role}"] for role in SINGLE_ROLES), strict=True):
        reliability, generality, language, scenario = docs
        assert all(doc["insertions"] == reliability["insertions"] for doc in docs)
        assert all(doc["insertion_image_id"] == reliability["image_id"] for doc in docs)
        assert generality["image_id"] != reliability["image_id"]
        assert generality["request_scenario"] == reliability["scenario"]
        assert generality["language"] == scenario["language"] == reliability["partition"]
        assert language["image_id"] == reliability["image_id"]
        assert language["language"] != language["partition"]
        assert scenario["request_scenario"] != scenario["scenario"]
        assert language["question"].startswith(f"q {language['language']} {language['scenario']}")


def test_a_chain_is_asked_about_each_step_after_all_three_insertions(documents):
    codes = ("en", "zh", "ar")
    first = {
        role: [documents[f"crosscult_sequential_{role}_{code}"][0] for code in codes]
        for role in ("reliability", "generality", "locality")
    }
    for step, reliability in enumerate(first["reliability"], start=1):
        assert [insertion["partition"] for insertion in reliability["insertions"]] == list(codes)
        assert reliability["step"] == step
        assert reliability["insertions"][step - 1]["answer"] == reliability["reference"]
    assert len({doc["image_id"] for doc in first["generality"]}) == 1  # i_gen has no step in equation 10
    assert len({doc["image_id"] for doc in first["locality"]}) == 3  # i_loc,t has one in equation 11


def test_retention_follows_a_partition_from_its_own_step_on(documents):
    for order in PAPER.orders:
        name = f"crosscult_retention_{'_'.join(order)}_{order[0]}_after"
        first, last = documents[f"{name}_1"][0], documents[f"{name}_3"][0]
        assert [insertion["partition"] for insertion in last["insertions"]] == list(order)
        assert first["insertions"] == last["insertions"][:1]
        assert all(first[field] == last[field] for field in ("question", "reference", "order"))
