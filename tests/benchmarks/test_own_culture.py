"""A culture as a folder: tasks in both harnesses and one report; what is wrong with it; how well people agree."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.cultures import cultures_in
from support.own_cultures import WORDS, make, write_csv, write_toml
from support.reports import cells_of, report_of, rows_of

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.interface import Picture, Task
from culture_tasks.cli.main import main
from culture_tasks.errors import CultureTasksError
from culture_tasks.harness.lmms_eval.plugin import task_index
from culture_tasks.harness.task_files import stale_files, write_task_files_of_cultures
from culture_tasks.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
RATED = "item,person,rating\na,p1,1\na,p2,1\nb,p1,5\nb,p2,9\nc,p1,9\nc,p2,5\nd,p1,3\n"


def check(folder, capsys, *, status=1):
    assert main(["culture", "check", str(folder), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def refusal(folder):
    with pytest.raises(CultureTasksError) as error:
        registry.culture_in(folder)
    return str(error.value)


# Both harnesses, and one report


@pytest.mark.filterwarnings("ignore")
def test_both_harnesses_run_it_and_a_report_has_its_columns_outside_of_means(tmp_path, monkeypatch):
    from support.written_runs import write_lm_eval, write_lmms_eval

    own = {f"{like}_korea": make(tmp_path / like, like) for like in ("care", "culturalvqa")}
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(ROOT / "examples" / "data"))
    with cultures_in(*own.values()):
        write_task_files_of_cultures()
        for name in own:
            include = registry.task_folder("lm_eval", registry.benchmarks()[name])
            write_lm_eval(tmp_path / "results" / name, [name], lambda *_: "답 1 kimchi", include=include)
        write_lmms_eval(tmp_path / "results" / "lmms", [*own, "care_ja", "culturalvqa_blind"], model="other")
        report = report_of(tmp_path / "results", published=True)
    assert report.units.keys() == {*own, "care_ja", "culturalvqa_blind"}
    assert cells_of(report, "culturalvqa_korea")["toy"].value == 1.0  # "kimchi" is in the answer
    assert cells_of(report, "care_korea").keys() == cells_of(report, "culturalvqa_korea").keys() == {"toy", "other"}
    assert [set(mean.columns) for mean in report.means] == [{"care_ja", "culturalvqa_blind"}]
    tables = [table for table in report.tables if table.key.startswith(tuple(own))]
    assert {row.labels[0] for table in tables for row in rows_of(table)} == {"toy", "other"}  # and no paper's


# Tasks


@pytest.mark.parametrize(("like", "number"), [("care", 4), ("culturalvqa", 3), ("cedar", 2), ("crosscult", 14)])
def test_tasks_have_the_metrics_and_prompts_of_the_benchmark(tmp_path, capsys, like, number):
    names = check(make(tmp_path / "own", like), capsys, status=0)["tasks"]
    assert len(names) == number
    with cultures_in(tmp_path / "own"):
        released = {entry.metric for entry in registry.benchmarks()[like].entries() if isinstance(entry, Task)}
        for task in map(registry.task_named, names):
            docs = task.data.load(Settings()).rows
            assert task.metric in released
            assert registry.metrics_of(task.name, like, task.metric)
            assert (Picture() in task.prompt(docs[0]).parts) == task.shows_images


def test_cedar_reads_its_own_words_and_english_ones(tmp_path):
    culture = registry.culture_in(make(tmp_path / "own", "cedar"))
    _, text, _ = culture.entries()
    first, second = text.data.load(Settings()).rows
    assert (first["gold"], second["gold"]) == ("fear", "relief")
    assert text.prompt(first).parts == ("ትረካ: ውሻ\nጥያቄ: ምን ተሰማህ?\nመልስ:",)
    replies = ["ፈራ", "The answer is fear.", "ፍርሃትን", "reliefo"]
    assert text.score(first, replies).labels == ["fear", "fear", None, "relief"]


def test_a_task_without_its_data_says_what_it_needs(tmp_path, capsys):
    lacking = check(make(tmp_path / "own", "care", people=None), capsys, status=0)["lacking"]
    [(reason, names)] = lacking.items()
    assert names == ["care_korea_en"]
    assert "field 'question_en': found nothing" in reason
    empty = make(tmp_path / "empty", "care")
    for table in (empty / "data").iterdir():
        table.unlink()
    assert main(["culture", "check", str(empty)]) == 1
    assert f"{empty}: holds no data/*.json (or .jsonl, .csv, .parquet). Put the file there." in capsys.readouterr().err


def test_task_files_are_of_this_package_alone_whatever_is_in_the_folder_or_the_cache(tmp_path):
    planted = "task: care_x\ndoc_to_text: !function os.getcwd\n"
    folder = make(tmp_path / "own", "care")
    (folder / "care_korea.yaml").write_text(planted, "utf-8")
    with cultures_in(folder):
        own = Path(task_index()["care_korea"]["yaml_path"])
        written, files = own.read_text("utf-8"), own.parents[2]
        assert "getcwd" not in written
        assert files / "lm_eval" in registry.task_folders("lm_eval")
        own.unlink()
        write_task_files_of_cultures()
        assert own.read_text("utf-8") == written
        own.write_text(planted, "utf-8")
        (files / "lm_eval" / "more").mkdir()
        (files / "lm_eval" / "more" / "x.yaml").write_text(planted, "utf-8")
        (files / "link").symlink_to(tmp_path)
        write_task_files_of_cultures()
        assert own.read_text("utf-8") == written
        assert not (files / "lm_eval" / "more").exists()
        assert not (files / "link").is_symlink()
        assert stale_files(registry.benchmarks()["care_korea"], files) == []


# What is wrong


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"like": "caer"}, "field 'like': found 'caer'. Did you mean 'care'? Expected one of care, cedar"),
        ({"name": "../x"}, "field 'name': found '../x'. String should match pattern"),
        ({"titel": "x"}, "unknown column 'titel'. Did you mean 'title'?"),
        ({"title": "x\nprocess_docs: !function os.system"}, "field 'title': found 'x\\nprocess_docs"),
        ({"title": "\u202eaerok"}, "field 'title'"),
        ({"title": None}, "no column 'title'."),
        ({"language": "Korean"}, "field 'language': found 'Korean'. Expected the code of a language"),
        ({"like": "cedar", "words": {"fear": ["x"]}, "prompts": {"text": "{narrative} {question}"}}, "none of anger"),
        ({"like": "cedar", "words": WORDS | {"awe": ["fearo", "ፈራ"]}}, "'ፈራ' is one of fear and of awe"),
        ({"like": "cedar", "words": WORDS | {"angr": ["x"]}}, "Did you mean 'anger'?"),
        ({"like": "cedar", "prompts": {"text": "{narrative} {x}"}}, "the slots {narrative} and {question}"),
        ({"like": "cedar", "prompts": {}}, "field 'prompts'"),
        ({"like": "crosscult", "language": "en"}, "key 'contrasts': found ['en']. Expected a partition in another"),
    ],
)
def test_a_culture_toml_that_cannot_be_used_is_refused(tmp_path, keys, said):
    folder = make(tmp_path / "own", "care", title="ශ්\u200dරී ලංකාව\u00a0Sud")  # which may join letters
    assert registry.culture_in(folder).file.title.endswith("Sud")
    write_toml(folder, **{"like": "care"} | keys)
    assert f"{folder / 'culture.toml'}" in refusal(folder)
    assert said in refusal(folder)


def test_a_toml_that_is_none_or_a_bomb_is_refused(tmp_path):
    folder = make(tmp_path / "own", "care")
    for content in (b"name = ", b"\xff", b"a = " + b"[" * 9_000, b".".join([b"a"] * 4_000) + b" = 1", b"#" * 20_001):
        (folder / "culture.toml").write_bytes(content)
        assert str(folder / "culture.toml") in refusal(folder)


def test_nothing_outside_of_the_folder_is_read(tmp_path, capsys):
    secret = tmp_path / "secret.csv"
    secret.write_text("question,answer\nsecret,secret\n", "utf-8")
    folder = make(tmp_path / "own", "culturalvqa")
    for name in ("data/link.csv", "images/p9.png"):
        (folder / name).symlink_to(secret)
    os.mkfifo(folder / "images" / "pipe.png")
    said = refusal(folder)
    assert said.count("a symbolic link") == 2
    assert "pipe.png: neither a file nor a folder" in said
    for name in ("data/link.csv", "images/p9.png", "images/pipe.png"):
        (folder / name).unlink()
    names = ["../../secret.csv", str(secret), "p9.png"]
    rows = [{"u_id": name, "question": "q", "image": name, "all_answers": "a"} for name in names]
    write_csv(folder / "data" / "all.csv", rows)
    problems = check(folder, capsys)["problems"]
    assert ["is outside" in problem for problem in problems] == [True, True, False]
    (folder / "data" / "all.csv").rename(folder / "data" / "all.parquet")
    assert "a Parquet file. Expected .csv" in refusal(folder)
    assert "holds no culture.toml" in refusal(tmp_path)


def test_every_bad_row_is_listed_with_its_field(tmp_path, capsys):
    folder = make(tmp_path / "own", "care")
    columns = "id,question,answer,culture_type,associated_culture,geographic_scope"
    lines = [columns, *(f"{line},a,Opinion,Native,Nationwide" for line in ("1,q", "1,", "1,q"))]
    (folder / "data" / "questions.csv").write_text("\n".join(lines), "utf-8-sig")  # a byte order mark is read
    (folder / "ratings.csv").write_text(f"{RATED}d,p1,4\nd,p2,11\n,p1,1\n", "utf-8")
    problems = [problem.removeprefix(f"{folder}/") for problem in check(folder, capsys)["problems"]]
    assert [problem.partition(": ")[0] for problem in problems] == [
        "data/questions.csv, row 3, field 'question'",
        "data/questions.csv, row 4, field 'id'",
        "ratings.csv, row 10, field 'rating'",
        "ratings.csv, row 11, field 'item'",
        "ratings.csv, row 9, field 'item'",
    ]
    assert "found '11'. Input should be less than or equal to 10." in problems[2]


def test_names_that_are_taken_and_folders_that_are_missing_are_refused(tmp_path):
    one, two = make(tmp_path / "one", "care"), make(tmp_path / "two", "care")
    for folders, said in (
        ([make(tmp_path / "ja", "care", name="ja")], "care's already"),
        ([one, two, one], f"{two}: its name 'korea' is that of {one}"),
        ([tmp_path / "none"], r"none: holds no culture\.toml"),
    ):
        with cultures_in(*folders), pytest.raises(CultureTasksError, match=said):
            registry.benchmarks()


# Agreement


@pytest.mark.parametrize(
    ("like", "ratings", "expected"),
    [
        (
            "care",
            f"{RATED}a,p3,1\nb,p3,5\nc,p3,9\n",
            {
                # (1, 5, 9), (1, 9, 5): means 5; covariance (16 + 0 + 0) / 3 over variance 32 / 3; 1 swapped pair of 3
                ("Pearson's r", "p1 and p2"): (3, 0.5),
                ("Spearman's rho", "p1 and p2"): (3, 0.5),
                ("Kendall's tau", "p1 and p2"): (3, 1 / 3),
                ("Pearson's r", "mean of 3 pairs"): (9, (0.5 + 1.0 + 0.5) / 3),  # p3 rates as p1 does
            },
        ),
        (
            "cedar",
            "item,person,label\n1,gold,fear\n1,p1,fear\n2,gold,awe\n2,p1,relief\n",
            {
                # Observed disagreement 1/2; expected 1 - (2 * 1 + 0 + 0) / (4 * 3) = 5/6.
                ("Krippendorff's alpha (nominal)", "all"): (2, 1 - (1 / 2) / (5 / 6)),
                ("macro F1", "gold and p1"): (2, 1 / 3),  # F1 of fear 1, of awe and relief 0
            },
        ),
        (
            "crosscult",  # any label will do: observed disagreement 1/2; expected 1 - (3 * 2) / (4 * 3)
            "item,person,label\n1,p1,holds\n1,p2,holds\n2,p1,holds\n2,p2,no one\n3,p1,rewrite\n",
            {("Krippendorff's alpha (nominal)", "all"): (2, 1 - (1 / 2) / (1 / 2))},
        ),
        ("cedar", "item,person,label\n1,p1,fear\n", {("macro F1", "all"): (0, None)}),
    ],
)
def test_agreement_is_that_of_the_paper(tmp_path, capsys, like, ratings, expected):
    folder = make(tmp_path / "own", like)
    (folder / "ratings.csv").write_text(ratings, "utf-8")
    assert main(["culture", "agree", str(folder), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    found = {(row["measure"], row["people"]): (row["n"], row["value"]) for row in rows}
    for key, (n, value) in expected.items():
        assert found[key] == (n, value if value is None else pytest.approx(value))


def test_ratings_that_cannot_be_used_are_told(tmp_path, capsys):
    folder = make(tmp_path / "own", "culturalvqa")
    for ratings, said in (
        (None, "ratings.csv: no such file"),
        ("item,person,rating\na,p1,6\n", "row 2, field 'rating': found '6'. Input should be less than or equal to 5"),
    ):
        if ratings:
            (folder / "ratings.csv").write_text(ratings, "utf-8")
        assert main(["culture", "agree", str(folder)]) != 0
        assert said in capsys.readouterr().err
