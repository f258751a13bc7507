"""The draw of CrossCult's cases: as the paper says, and the same everywhere."""

from collections import Counter

import pytest
from support.crosscult_cases import paper_sized, raw_cases, rows, write_folder

from culture_tasks.benchmarks.crosscult.documents import Release
from culture_tasks.benchmarks.crosscult.draw import make_draw
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.raw_cases import load
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

TOPICS = ("social", "religious", "ethical")
SIX = {f"s{number}": topic for number, topic in enumerate(TOPICS * 2)}


@pytest.fixture(scope="module")
def whole():
    raw = paper_sized()
    return raw, make_draw(raw)


def test_the_counts_are_those_of_table_1_and_each_test_has_its_share_of_every_topic(whole):
    _, draw = whole
    assert Counter(draw.split.values()) == {"train": 29, "single": 10, "sequential": 10}
    parts = Counter(draw.split[pair.case.rsplit("-", 1)[0]] for pair in draw.single)
    assert parts == {"train": 11_600, "single": 4_000}
    assert len(draw.sequential) == 2_000
    shares = Counter((part, scenario.split()[0]) for scenario, part in draw.split.items())
    for part in ("single", "sequential"):
        assert [shares[part, topic] for topic in TOPICS] == [3, 4, 3]  # of 16, 19, 14


def test_the_number_of_documents_is_that_of_table_1(whole):
    release = Release(*whole)
    assert sum(1 for _ in release.diagnostic()) == 3 * 9_800
    assert sum(1 for _ in release.single("generality")) == 4_000
    assert sum(1 for _ in release.sequential("locality", "zh")) == 2_000
    assert sum(1 for _ in release.retention(PAPER.orders[0], "en", 2)) == 2_000


def test_items_come_from_where_the_paper_says(whole):
    raw, draw = whole
    scenario = {case.id: case.scenario for case in raw.cases}
    for pair in draw.single:
        assert pair.generality != pair.case
        assert scenario[pair.generality] == scenario[pair.case] != scenario[pair.cross_scenario]
        assert draw.split[scenario[pair.cross_scenario]] == draw.split[scenario[pair.case]]
    for chain in draw.sequential:
        assert scenario[chain.generality] == scenario[chain.case]
        assert scenario[chain.case] not in {scenario[item] for item in chain.locality}
        assert len(set(chain.locality)) == 3
    # both other partitions are drawn about equally
    drawn = Counter((pair.target, pair.cross_language) for pair in draw.single)
    assert set(drawn) == {("zh", "en"), ("zh", "ar"), ("ar", "en"), ("ar", "zh")}
    assert max(drawn.values()) < 1.1 * min(drawn.values())


def test_a_draw_does_not_depend_on_the_order_of_rows():
    raw, again = raw_cases(SIX, 3), raw_cases(SIX, 3)
    again.cases.reverse()
    assert make_draw(raw).split == make_draw(again).split
    assert sorted(make_draw(raw).single, key=str) == sorted(make_draw(again).single, key=str)
    assert make_draw(raw).fingerprint == "ba26a722f049b953"  # as in the records of earlier versions


def test_the_split_of_the_data_takes_precedence(tmp_path):
    content = rows()
    parts = ("Single-insert / Test", "sequential-insert test", "train")
    for index, row in enumerate(content):
        row["split"] = parts[index // 4]
    draw = make_draw(load(Settings(data=write_folder(tmp_path / "all", content))))
    assert draw.split == {f"scenario {number}": ("single", "sequential", "train")[number // 2] for number in range(6)}
    for row in content[10:]:
        del row["split"]
    with pytest.raises(DataError, match="5 of 6 scenarios have a value in the column 'split'"):
        make_draw(load(Settings(data=write_folder(tmp_path / "some", content))))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (raw_cases(dict.fromkeys("abc", "social"), 2), "3 scenarios can't be split. Expected at least 4"),
        (raw_cases(SIX, 1), "has one case. Expected another case"),
        (raw_cases({"a": "social"}, 2, part="single"), "has no other scenario beside it in the part 'single'"),
    ],
)
def test_too_little_data(raw, message):
    with pytest.raises(DataError, match=message):
        make_draw(raw)
