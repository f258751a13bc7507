import csv
import io
import json

import datasets
import pytest
from PIL import Image
from support.crosscult_cases import rows, write_folder

from culture_tasks.benchmarks.crosscult.raw_cases import QuestionAnswer, load
from culture_tasks.data import sources
from culture_tasks.errors import DataError


def test_a_case_holds_the_sample_of_each_partition(tmp_path):
    raw = load(write_folder(tmp_path, rows()))
    case = raw.by_id["1-1"]
    assert (case.scenario, case.topic, case.part) == ("scenario 1", "religious", None)
    assert case.samples["zh"] == QuestionAnswer("这个可以吗，1 1？", "不可以 1 1。")
    assert case.image == "1_1.png"


def test_json_lines_and_csv_read_the_same(tmp_path):
    content = rows()
    write_folder(tmp_path / "json", content)
    write_folder(tmp_path / "lines", content, "other.txt")
    lines = "\n".join(json.dumps(row) for row in content)
    (tmp_path / "lines" / "crosscult" / "raw_cases.jsonl").write_text(lines, encoding="utf-8")
    write_folder(tmp_path / "csv", content, "other.txt")
    with (tmp_path / "csv" / "crosscult" / "crosscult.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, content[0])
        writer.writeheader()
        writer.writerows(content)
    read = [load(tmp_path / name) for name in ("json", "lines", "csv")]
    assert read[0].cases == read[1].cases == read[2].cases
    assert len({each.fingerprint for each in read}) == 1


def test_parquet_with_embedded_images_is_written_out_once_by_content(tmp_path):
    home = tmp_path / "crosscult"
    home.mkdir()
    content = rows()
    for index, row in enumerate(content):
        row["image"] = Image.new("RGB", (12, 8), (index // 2 * 9, 0, 0))
    features = datasets.Features({name: datasets.Value("string") for name in content[0]} | {"image": datasets.Image()})
    datasets.Dataset.from_list(content, features=features).to_parquet(str(home / "cases.parquet"))
    raw = load(tmp_path)
    files = raw.images(["0-0", "0-1", "1-0", "0-0"])
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
    flat = load(write_folder(tmp_path / "flat", [row | {"id": str(index)} for index, row in enumerate(rows())])).cases
    assert cases == flat


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer_arab_ar": " "}, r"row 3, field 'answer_arab_ar'"),
        ({"topic": "Food"}, r"row 3, field 'topic': found 'Food'. Allowed are Social Values"),
        ({"topic": "Ethical Values"}, r"row 4, field 'topic': .*row 3 of the same scenario 'scenario 1'"),
        ({"split": "validation"}, r"row 3, field 'split': found 'validation'. Allowed are train, single, sequential"),
        ({"id": "0-0"}, r"field 'id': '0-0' is also the id of .*row 1"),
        ({"colour": "red"}, r"unknown column 'colour'"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(tmp_path, changes, message):
    content = rows()
    content[2] |= changes
    with pytest.raises(DataError, match=message):
        load(write_folder(tmp_path, content))


def test_a_missing_column_is_named_and_row_numbers_are_ids(tmp_path):
    def without(name):
        return [{key: value for key, value in row.items() if key != name} for row in rows()]

    with pytest.raises(DataError, match="no column 'question_zh'"):
        load(write_folder(tmp_path / "column", without("question_zh")))
    assert [case.id for case in load(write_folder(tmp_path, without("id"))).cases] == list(map(str, range(12)))


@pytest.mark.parametrize("content", [b"", b"no image"])
def test_a_broken_image_is_named_when_it_is_needed(tmp_path, content):
    folder = write_folder(tmp_path, rows())
    (folder / "crosscult" / "2_1.png").write_bytes(content)
    raw = load(folder)
    assert len(raw.images(["0-0", "0-1"])) == 2
    with pytest.raises(DataError, match=r"row 6, field 'image'"):
        raw.images(["0-1", "2-1"])


def test_the_hub_gives_all_its_splits_together(tmp_path, monkeypatch):
    content = [{name: value for name, value in row.items() if name != "image"} for row in rows()]
    for split, part in (("train", content[:6]), ("test", content[6:])):
        image = io.BytesIO()
        Image.new("RGB", (4, 4)).save(image, "PNG")
        data = datasets.Dataset.from_list([row | {"image": {"bytes": image.getvalue(), "path": None}} for row in part])
        data.cast_column("image", datasets.Image()).to_parquet(str(tmp_path / f"{split}.parquet"))
    files = {split: str(tmp_path / f"{split}.parquet") for split in ("train", "test")}

    def load_split(name, config, split, otherwise):
        assert name == "crosscult-kibench/CrossCult-KIBench"
        return datasets.load_dataset("parquet", config, data_files=files, split=split)

    monkeypatch.setattr(sources, "load_split", load_split)
    assert len(load(None).cases) == 12
