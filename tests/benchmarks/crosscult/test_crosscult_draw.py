"""The draw of CrossCult's cases: as the paper says, by a seed, and kept in a file that is checked."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.crosscult_cases import paper_sized, raw_cases, rows, write_folder

from culture_tasks.benchmarks.crosscult.documents import Release, load_release
from culture_tasks.benchmarks.crosscult.draw import FILE_NAME, DrawOptions, draw_in_force, make_draw
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.raw_cases import load
from culture_tasks.cli.main import main
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


def test_a_draw_depends_on_the_seed_and_not_on_the_order_of_rows():
    raw, again = raw_cases(SIX, 3), raw_cases(SIX, 3)
    again.cases.reverse()
    assert make_draw(raw).split == make_draw(again).split
    assert sorted(make_draw(raw).single, key=str) == sorted(make_draw(again).single, key=str)
    assert make_draw(raw, DrawOptions(seed=1)).fingerprint != make_draw(raw).fingerprint


@given(
    seed=st.integers(), scenarios=st.integers(4, 12), cases=st.integers(2, 4), by=st.sampled_from(["topic", "scenario"])
)
def test_every_draw_fits_its_data_and_survives_the_file(tmp_path_factory, seed, scenarios, cases, by):
    raw = raw_cases({f"s{number}": TOPICS[number % 3] for number in range(scenarios)}, cases)
    pool = "all" if scenarios - 4 == 1 else "part"  # one scenario for training has no other one beside it
    draw = make_draw(raw, DrawOptions(seed=seed, split_by=by, locality_pool=pool))
    folder = tmp_path_factory.mktemp("draw")
    (folder / FILE_NAME).write_text(draw.model_dump_json())
    assert draw_in_force(folder, raw) == draw
    assert min(Counter(draw.split.values())[part] for part in ("single", "sequential")) >= 2


def test_partitions_of_locality_and_the_pool_of_other_scenarios_can_be_chosen():
    raw = raw_cases(SIX, 2)
    partners = {"english": {("zh", "en"), ("ar", "en")}, "other": {("zh", "ar"), ("ar", "zh")}}
    for choice, expected in partners.items():
        draw = make_draw(raw, DrawOptions(cross_language=choice))
        assert {(pair.target, pair.cross_language) for pair in draw.single} == expected
    draw = make_draw(raw, DrawOptions(locality_pool="all"))
    part = {case.id: draw.split[case.scenario] for case in raw.cases}
    assert any(part[pair.cross_scenario] != part[pair.case] for pair in draw.single)


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
        (raw_cases(SIX, 1), "has one case. Generality needs another one"),
        (raw_cases({"a": "social"}, 2, part="single"), "no scenario beside 'a' in the part 'single'"),
    ],
)
def test_too_little_data(raw, message):
    with pytest.raises(DataError, match=message):
        make_draw(raw)


def test_the_command_writes_a_draw_that_is_used_in_place_of_the_default_one(tmp_path, capsys):
    folder = write_folder(tmp_path, rows())
    default = load_release(Settings(data=folder)).draw
    out = tmp_path / "new" / FILE_NAME
    command = ["data", "draw", "crosscult", "--data", str(folder), "--out"]
    options = ["--seed", "9", "--cross-language", "english", "--locality-pool", "all", "--split-by", "scenario"]
    assert main([*command, str(out), *options]) == 0
    assert "16 single-insert cases, 4 chains" in capsys.readouterr().out
    expected = {"seed": 9, "split_by": "scenario", "cross_language": "english", "locality_pool": "all"}
    assert json.loads(out.read_text())["options"] == expected
    out.rename(folder / FILE_NAME)
    assert load_release(Settings(data=folder)).draw.options.seed == 9 != default.options.seed
    assert main([*command, str(tmp_path)]) != 0
    assert f"data draw: can't write to {tmp_path} (Is a directory). Choose another place." in capsys.readouterr().err


def pair(draw, **changes):
    """Changes of the first pair."""
    return {"single": (draw.single[0].model_copy(update=changes), *draw.single[1:])}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda draw: {"data": "other"}, "made for data with the fingerprint other"),
        (lambda draw: {"single": draw.single[1:]}, "are not the Chinese and the Arabic target"),
        (lambda draw: {"sequential": ()}, "are not one for each case of 'sequential'"),
        (lambda draw: {"split": {**draw.split, "more": "train"}}, "scenario 'more' is in the data or in the split"),
        (lambda draw: {"format": 2}, "Input should be 1. Make a draw with `culture-tasks data draw`"),
        (lambda draw: pair(draw, cross_language=draw.single[0].target), "has 'zh' for cross-language"),
        (lambda draw: pair(draw, generality="none"), "has 'none' for generality. Expected another case of its"),
        (lambda draw: pair(draw, generality=draw.single[0].case), "for generality. Expected another case of its"),
        (lambda draw: pair(draw, cross_scenario=draw.single[0].case), "locality. Expected a case of a scenario other"),
    ],
)
def test_a_draw_that_does_not_fit_is_refused(tmp_path, changes, message):
    raw = raw_cases(SIX, 2)
    draw = make_draw(raw)
    (tmp_path / FILE_NAME).write_text(draw.model_copy(update=changes(draw)).model_dump_json())
    with pytest.raises(DataError, match=message):
        draw_in_force(tmp_path, raw)
