"""``culture-tasks data check cedar``."""

from __future__ import annotations

from support.cedar_data import row, rows, write_folder

from culture_tasks.benchmarks.cedar.documents import check, gold_counts
from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.cli.main import main


def counts(report):
    return {line.name: line.found for line in report.counts}


def test_complete_data_are_as_in_table_4_and_one_other_label_is_seen(tmp_path):
    content = {}
    for language in LANGUAGES:
        emotions = [name for name, count in gold_counts("text")[language].items() for _ in range(count)]
        content[language] = [row(number, language, emotion) for number, emotion in enumerate(emotions)]
    report = check(write_folder(tmp_path, content))
    assert report.usable
    assert [line.name for line in report.counts if line.differs] == ["multimodal: files"]
    moved = next(number for number, one in enumerate(content["hi"]) if one["english_ver_answer"] == "fear")
    content["hi"][moved] = row(moved, "hi", "pain")
    report = check(write_folder(tmp_path, content))
    differing = {line.name: (line.found, line.paper) for line in report.counts if line.differs}
    del differing["multimodal: files"]
    assert differing == {"text: hindi fear": ("101", "102"), "text: hindi pain": ("13", "12")}


def test_more_of_a_label_than_the_paper_has_is_seen_in_partial_data_too(tmp_path):
    content = {language: [row(number, language, "disgust") for number in range(12)] for language in LANGUAGES}
    report = check(write_folder(tmp_path, content))
    differing = [line.name for line in report.counts if line.differs and "disgust" in line.name]
    assert differing == ["text: japanese disgust", "text: chinese disgust"]  # 11 and 9 in Table 4


def test_all_problems_are_found_at_once(tmp_path, capsys):
    content = rows()
    content["ar"][0]["english_ver_answer"] = "angst"
    content["es"][1]["minority"] = "boredom"
    content["hi"][0]["question"] = ""
    content["ja"][1]["id"] = 1
    folder = write_folder(tmp_path, content, images=True)
    images = folder / "cedar" / "images"
    (images / "1.png").write_bytes(b"no image")
    (images / "3.png").unlink()
    (folder / "cedar" / "multilingual" / "swahili_inq_sample.json").write_text("[")
    assert main(["data", "check", "cedar", "--data", str(folder)]) == 1
    said = capsys.readouterr().out
    for part in (
        "arabic_inq_sample.json, row 1, field 'english_ver_answer': cedar: 'angst'",
        "spanish_inq_sample.json, row 2, field 'minority': cedar: 'boredom'",
        "hindi_inq_sample.json, row 1, field 'question'",
        "japanese_inq_sample.json, row 2, field 'id': '1' is also the id of",
        "swahili_inq_sample.json, line 1",
        "row 1, field 'image': broken image",
        "row 3, field 'image': no file '3.png'",
    ):
        assert said.count(part) == 1, part
    assert said.count("problem: ") == 7


def test_answers_that_do_not_fit_uneven_ids_and_missing_or_doubtful_files_are_said_once(tmp_path):
    content = rows()
    content["en"][0]["answer"] = "awe"
    content["sw"][1]["answer"] = "neno"
    report = check(write_folder(tmp_path / "odd", content))
    assert report.usable
    found = counts(report)
    different = found["text: answers that are another label than english_ver_answer"]
    assert different == "1 (first: id '1' in en)"
    assert found["text: answers that are none of the paper's words"] == "1 (first: id '2' in sw)"
    assert found["text: ids that not every language has"] == "1 (first: id '3' in zh)"
    del content["sw"]
    for one in content["en"]:
        one["naration"] = one.pop("narrative")
    folder = write_folder(tmp_path / "wrong", content)
    (folder / "cedar" / "text" / "hindi_nq_2.json").write_text("[]")
    report = check(folder)
    for said in ("holds no multilingual/swahili_nq", "both match", "no column 'narrative'"):
        assert len([problem for problem in report.problems if said in problem]) == 1, said
    assert counts(report)["multimodal: files"] == "0"
