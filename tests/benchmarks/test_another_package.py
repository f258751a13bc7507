"""Benchmarks of another package run in both harnesses, with no edit of this one.

Their scores that are no mean of rows have one number: in both harnesses, rejudge, report, compare and frames.
"""

from __future__ import annotations

import json
import shutil

import pytest
from support.another_package import installed
from support.reports import rows_of

from culture_tasks import frames
from culture_tasks.cli.main import main
from culture_tasks.report.building import Options, build
from culture_tasks.report.compare.two_models import compare_models

pytestmark = pytest.mark.filterwarnings("ignore")

HARNESSES = ("lm_eval", "lmms_eval")
WHOLE = {
    "quiz_hard": ("question_acc", 2 / 12),  # of 12 questions 2 have all four rows right
    "quiz_easy": ("row_acc", 35 / 48),
    "quiz_f1": ("f1", (2 * 35 / (48 + 35) + 0) / 2),  # every reply is "lol", which 35 of 48 rows want
    "quiz_judged": ("all_good_lexical", 2 / 12),
    "quiz_shared": ("question_acc", 2 / 12),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders with runs of both harnesses: of a model that always says the same, and of one that does so at times."""
    from support.lmms_models import SimpleEcho
    from support.written_runs import write_lm_eval, write_lmms_eval

    class Constant(SimpleEcho):
        def generate_until(self, requests):
            return ["lol"] * len(requests)

    class Fickle(SimpleEcho):
        def generate_until(self, requests):
            return [("lol", "no")[sum(map(ord, request.args[0])) % 3 == 0] for request in requests]

    folder = tmp_path_factory.mktemp("runs")
    with installed(tmp_path_factory.mktemp("site")) as package, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_JUDGE", "lexical")
        include = package / "proverbs" / "task_files" / "lm_eval"
        tasks = [*WHOLE, "proverbs"]
        write_lm_eval(folder / "lm_eval", tasks, lambda *_: "lol", "constant", include=include)
        write_lmms_eval(folder / "lmms_eval", tasks, "constant", lmms=Constant())
        write_lmms_eval(folder / "other", tasks, "fickle", lmms=Fickle())
        yield folder


def results_in(folder):
    [path] = (path for path in folder.rglob("*.json") if "results" in path.name)
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def test_it_is_listed_and_checked(runs, capsys):
    assert main(["tasks", "--json"]) == main(["data", "check", "proverbs"]) == 0
    printed = capsys.readouterr().out
    assert all(f'"name": "{name}"' in printed for name in ("proverbs", "proverbs_north", "proverbs_south"))
    assert "proverbs   5   paper: 5" in printed


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_harness_has_the_metric_s_own_value_and_error(runs, harness):
    results = results_in(runs / harness)
    assert results["proverbs"]["ending_lexical,none"] == 0.0
    assert results["proverbs_north"]["words,none"] == results["proverbs_north"]["ending_coverage,none"] == 1.0
    for task, (metric, value) in WHOLE.items():
        assert results[task][f"{metric},none"] == pytest.approx(value), task
    error = (2 / 12 * 10 / 12 / 11) ** 0.5  # of 12 questions
    judged = ("quiz_judged", "all_good_lexical")
    for task, metric in (("quiz_hard", "question_acc"), ("quiz_easy", "question_acc"), judged):
        row = results[task]
        assert row[f"{metric}_stderr,none"] == pytest.approx(error), task
        assert row[f"{metric}_chile,none"] == pytest.approx(1 / 6), task
    assert 0.01 < results["quiz_f1"]["f1_stderr,none"] < 0.03
    # the same question is right in both countries: two tasks know no more than one
    assert results["quiz_shared"]["question_acc_stderr,none"] == pytest.approx(
        results["quiz_shared_chile"]["question_acc_stderr,none"]
    )


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_new_grading_has_the_same_number(runs, harness, tmp_path, monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    shutil.copytree(runs / harness, tmp_path / "runs")
    assert main(["rejudge", str(tmp_path / "runs"), "--judge", "lexical"]) == 0
    old, new = sorted((tmp_path / "runs").rglob("*results*.json"), key=lambda path: path.stat().st_mtime_ns)
    before, after = (json.loads(path.read_text(encoding="utf-8"))["results"]["quiz_judged"] for path in (old, new))
    scores = [name for name in before if name.startswith("all_good")]
    assert scores
    assert [after[name] for name in scores] == [before[name] for name in scores]


def test_the_report_and_the_frames_have_the_same_number(runs):
    report = build([str(runs)], Options())
    units = {key: unit.cells for key, unit in report.units.items()}
    labels = {key: entrant.label for key, entrant in report.entrants.items()}
    for task, (_, value) in WHOLE.items():
        cells = {labels[key]: cell for key, cell in units[task].items()}
        for label, cell in cells.items():
            assert "mixed" not in cell.flags
            if label != "fickle":
                assert cell.value == pytest.approx(value), (task, label)
                assert cell.low < value < cell.high
    [table] = [table for table in report.tables if table.key == "quiz_hard_by_country"]
    constant = next(row for row in rows_of(table) if row.labels == ("constant",))
    assert [cell.value for cell in constant.cells] == pytest.approx([1 / 6, 1 / 6, WHOLE["quiz_hard"][1]])
    assert "quiz_country" in {figure.key for figure in report.figures}
    frame = frames.scores(str(runs)).dropna(subset="value")
    own = frame[(frame.model == "constant") & (frame.dimension == "")].set_index("task").value
    assert own[list(WHOLE)].to_dict() == pytest.approx({task: value for task, (_, value) in WHOLE.items()})
    [solved] = frame[(frame.model == "constant") & (frame.metric == "solved")].value
    assert solved == pytest.approx(2 / 12)
    rows = frame[(frame.model == "constant") & (frame.group == "chile")].set_index(["task", "metric"]).value
    assert rows["quiz_hard", "question_acc"] == pytest.approx(1 / 6)
    assert rows["quiz_hard", "row_acc"] == pytest.approx(18 / 24)
    assert rows["quiz_easy", "question_acc"] == pytest.approx(1 / 6)
    assert rows["quiz_f1", "f1"] == pytest.approx(18 / 42)  # 2 * 18 / (24 + 18), halved


def test_models_are_compared_on_the_same_number(runs):
    files = results_in(runs / "lmms_eval"), results_in(runs / "other")
    found = compare_models(str(runs / "lmms_eval"), str(runs / "other"), Options())
    assert not found.not_compared
    tests = {each.benchmark: each.test for each in found.tests}
    for task, (metric, _) in WHOLE.items():
        apart = files[1][task][f"{metric},none"] - files[0][task][f"{metric},none"]
        assert tests[task].difference == pytest.approx(apart), task
    methods = {task: (test.test, test.n) for task, test in tests.items()}
    assert (methods["quiz_hard"], methods["quiz_f1"]) == (("sign flips", 12), ("bootstrap", 48))
    assert {(each.benchmark, each.culture) for each in found.cultures} >= {("quiz_f1", "chile"), ("quiz_hard", "ghana")}
