"""CrossCult's raw cases: as released, with their images, counted beside Table 1, and refused."""

import datasets
import pytest
from PIL import Image
from support.crosscult_cases import rows, write_folder

from culture_tasks.benchmarks.crosscult.benchmark import BENCHMARK
from culture_tasks.benchmarks.crosscult.raw_cases import QuestionAnswer
from culture_tasks.benchmarks.crosscult.raw_cases import load as load_cases
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings


def load(folder):
    return load_cases(Settings(data=folder))


def check(folder):
    return BENCHMARK.check(Settings(data=folder))


def test_a_case_holds_the_sample_of_each_partition(tmp_path):
    case = load(write_folder(tmp_path, rows())).cases_by_id["1-1"]
    assert (case.scenario, case.topic, case.part, case.image) == ("scenario 1", "religious", None, "1_1.png")
    assert case.samples["zh"] == QuestionAnswer("这个可以吗，1 1？", "不可以 1 1。")


def test_parquet_with_embedded_images_is_written_out_once_by_content(tmp_path):
    home = tmp_path / "crosscult"
    home.mkdir()
    content = rows()
    for index, row in enumerate(content):
        row["image"] = Image.new("RGB", (12, 8), (index // 2 * 9, 0, 0))
    features = datasets.Features({name: datasets.Value("string") for name in content[0]} | {"image": datasets.Image()})
    datasets.Dataset.from_list(content, features=features).to_parquet(str(home / "cases.parquet"))
    files = load(tmp_path).images(["0-0", "0-1", "1-0", "0-0"])
    assert files[0] == files[1] == files[3] != files[2]
    with Image.open(files[2]) as image:
        assert image.convert("RGB").getpixel((0, 0)) == (9, 0, 0)


def test_the_nested_answer_of_figure_8_is_taken_apart(tmp_path):
    content = rows()
    for index, row in enumerate(content):
        row["qa"] = {name: row.pop(name) for name in list(row) if name.startswith(("question", "answer"))}
        row["qa"]["answer_china_zh_en"] = "No."
        row |= {"is_match": True, "has_obvious_error": False, "reason": "fits", "id": index, "split": ""}
    cases = load(write_folder(tmp_path / "nested", content)).cases
    without_ids = [{name: value for name, value in row.items() if name != "id"} for row in rows()]
    assert cases == load(write_folder(tmp_path / "flat", without_ids)).cases


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer_arab_ar": " "}, r"row 3, field 'answer_arab_ar'"),
        ({"topic": "Food"}, r"row 3, field 'topic': found 'Food'. Expected one of Social Values"),
        ({"topic": "Ethical Values"}, r"row 4, field 'topic': .*row 3 of the same scenario 'scenario 1'"),
        (
            {"split": "validation"},
            r"row 3, field 'split': found 'validation'. Expected one of train, single, sequential",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_row(tmp_path, changes, message):
    content = rows()
    content[2] |= changes
    with pytest.raises(DataError, match=message):
        load(write_folder(tmp_path, content))


def test_a_broken_image_is_named_when_it_is_needed(tmp_path):
    folder = write_folder(tmp_path, rows())
    (folder / "crosscult" / "2_1.png").write_bytes(b"no image")
    raw = load(folder)
    assert len(raw.images(["0-0", "0-1"])) == 2
    with pytest.raises(DataError, match=r"row 6, field 'image'"):
        raw.images(["0-1", "2-1"])


# The check


def lines(report):
    return {line.name: line.found for line in report.counts}


def test_good_data_are_counted_and_compared(tmp_path):
    report = check(write_folder(tmp_path, rows()))
    assert report.usable
    found = lines(report)
    names = ("raw cases", "scenarios of Religious Values", "cases of a scenario")
    assert [found[name] for name in names] == ["12", "2", "2"]


def test_all_problems_are_found_at_once_and_a_long_list_is_cut(tmp_path):
    content = rows()
    content[1]["answer_china_zh"] = ""
    content[7]["question_ar"] = None
    folder = write_folder(tmp_path, content)
    (folder / "crosscult" / "0_0.png").write_bytes(b"no image")
    (folder / "crosscult" / "5_1.png").unlink()
    report = check(folder)
    assert [problem.split("row ")[1].split(",")[0] for problem in report.problems] == ["2", "8", "1", "12"]
    assert lines(report)["raw cases"] == "10"
    text = check(write_folder(tmp_path / "many", [row | {"answer_us_en": ""} for row in rows(12, 3)])).text()
    assert text.endswith("… and 16 more problems")
    assert text.count("problem:") == 20
