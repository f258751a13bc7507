"""``culture-tasks data check blend``: counts of each region, and every problem at once."""

from __future__ import annotations

import json
import shutil

import pytest

from culture_tasks.benchmarks.blend.documents import check
from culture_tasks.benchmarks.blend.regions import REGIONS
from culture_tasks.data import sources
from culture_tasks.errors import DataUnavailableError


@pytest.fixture
def copied(fixture_data, tmp_path):
    """A copy of the bundled questions that a test may change."""
    shutil.copytree(fixture_data / "blend", tmp_path / "blend")
    return tmp_path


def test_the_bundled_questions_are_usable_and_counted_and_a_blank_one_is_no_problem(copied):
    china = copied / "blend" / "annotations" / "China_data.json"
    entries = json.loads(china.read_text(encoding="utf-8"))
    entries["Toy-01"]["question"] = "  "
    china.write_text(json.dumps(entries), encoding="utf-8")
    report = check(copied)
    assert report.usable
    found = {line.name: (line.found, line.paper) for line in report.counts}
    assert found["South Korea: questions"] == ("4", "500")
    assert found["South Korea: valid"] == ("3", "475")
    assert found["South Korea: multiple choice"] == ("2", None)
    assert found["China: valid, without a text in Chinese"] == ("1", None)
    assert len(found) == 3 * len(REGIONS) + 1


def test_every_problem_is_told(copied, monkeypatch):
    def unreachable(name, config, *_):
        raise DataUnavailableError(f"{name} ({config}): no network")

    monkeypatch.setattr(sources, "load_split", unreachable)
    blend = copied / "blend"
    (blend / "annotations" / "UK_data.json").unlink()
    (blend / "prompts" / "UK_prompts.csv").unlink()
    (blend / "questions" / "Assam_questions.csv").unlink()
    (blend / "prompts" / "China_prompts.csv").unlink()
    greece = blend / "annotations" / "Greece_data.json"
    entries = json.loads(greece.read_text(encoding="utf-8"))
    entries["Toy-02"]["annotations"][0]["count"] = -1
    entries["Toy-99"] = entries["Toy-01"]
    greece.write_text(json.dumps(entries), encoding="utf-8")
    choices = blend / "mc_questions_file.csv"
    choices.write_text(choices.read_text(encoding="utf-8").replace(",US,", ",USA,", 1), encoding="utf-8")

    problems = check(copied).problems
    for part in (
        "holds no annotations/UK_data.json",
        "nayeon212/BLEnD (short-answer-questions): ",
        "found no prompts in Chinese. Expected blend/prompts/China_prompts.csv",
        "Greece_data.json, row 2, field 'annotations.0.count': found -1",
        "Greece_data.json, row 5, field 'ID': 'Toy-99' is not among the questions of",
        "field 'country': found 'USA'. Expected one of Algeria",
    ):
        assert sum(part in problem for problem in problems) == 1, part
    assert len(problems) == 6
