"""A culture like CulturalVQA: its images, its people, and the benchmark that comes of them."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from PIL import Image
from support.cultures import cultures_in
from support.groups import SKIP, Group, with_options

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.culturalvqa.benchmark import BENCHMARK
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

PEOPLE = {"hye": [], "min": [], "jun": [], "sol": ["answer", "rate"]}
OPTIONS = {"questions_per_image": 2, "rated_questions": 3, "raters": 2}


def picture(color, size=(200, 150), kind="JPEG", **saved):
    content = io.BytesIO()
    Image.new("RGB", size, color).save(content, kind, **saved)
    return content.getvalue()


def with_place(color):
    exif = Image.Exif()
    exif[0x0110], exif[0x8825] = "A camera", {1: "N", 2: (37.0, 33.0, 0.0)}
    return picture(color, exif=exif)


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """A group that has done all steps; min answers something else, jun skips, sol stops after the second question."""
    folder = tmp_path_factory.mktemp("culturalvqa") / "korea"
    about = {"name": "korea", "title": "South Korea", "language": "en", "place": "KR", "options": OPTIONS}
    group = Group(folder, "culturalvqa", PEOPLE, **about)
    files = {
        "tteokbokki.jpg": with_place("red"),
        **{f"{color}.jpg": picture(color) for color in ("blue", "green", "yellow", "white")},
        "cafe\u0301.jpg": picture("pink", kind="MPO", save_all=True, append_images=[Image.new("RGB", (9, 9))]),
        "copy.jpg": picture("blue"),
        "banner.jpg": picture("gray", (500, 100)),
        "tiny.png": picture("gray", (99, 120), "PNG"),
        "crowd.jpg": picture("black"),
        "rude.jpg": picture("brown"),
    }
    for name, content in files.items():
        group.input(f"images/{name}", content)
    yes = {"white.jpg": ",yes,yes"}
    rows = [f"{unicodedata.normalize('NFC', name)},own,CC BY 4.0{yes.get(name, ',,')}" for name in files]
    group.input("inputs/images.csv", "\n".join(["file,source,licence,people,consent", *rows]))
    assert list(group.project.form.check(group.project.state())) == []
    group.do("screen", "hye", screened)
    group.do("write", "hye", lambda row: None if row.name.endswith(".2") else question(row, "food"))
    group.do("write", "min", lambda row: SKIP if "green" in row.image else question(row, "clothing"))
    group.do(
        "answer", "sol", lambda row: {"answer": "Kimchi!", "variants": ["gimchi"]} if row.image != "white.jpg" else None
    )
    group.do("answer", "min", lambda row: {"answer": "rice"})
    group.do("answer", "jun", lambda row: SKIP)
    group.ask("respond", "some-vlm", lambda prompt: f"kimchi {len(prompt)}")
    for person, worse in (("jun", 0), ("sol", 1)):
        group.do("rate", person, lambda row, worse=worse: {"rating": 2 + worse})
    return group


def screened(row):
    if row.image == "rude.jpg":
        return {"suitable": False}
    return {"suitable": True, "people": row.image in ("crowd.jpg", "white.jpg")}


def question(row, facet):
    return {"question": f"What is on {row.image.partition('.')[0][::-1]}?", "facet": facet, "answer": "kimchi"}


def test_images_are_filtered_by_shape_content_and_consent_and_nothing_is_lost(group):
    built = group.project.form.build(group.project.state())
    reasons = {row.row: row.reason for row in built.dropped}
    assert {name: reasons.get(name, "") for name in ("banner.jpg", "tiny.png", "crowd.jpg", "rude.jpg")} == {
        "banner.jpg": "aspect ratio outside of 0.5 to 2 (Appendix B)",
        "tiny.png": "smaller than 100 pixels (Appendix B)",
        "crowd.jpg": "people can be recognised in it, and inputs/images.csv records no consent",
        "rude.jpg": "a reviewer left it out",
    }
    assert {"blue.jpg", "copy.jpg"} & reasons.keys() == {"copy.jpg"}
    rows = built.tables["test.json"]
    written = [row for row, entries in group.project.state().entries["write"].items() if entries[0].values]
    assert set(written) == {row["u_id"] for row in rows} | (reasons.keys() & set(written))
    assert set(built.images.values()) | reasons.keys() >= set(group.project.state().images)
    assert not [name for name in built.images if "tteokbokki" in name]


def test_a_question_needs_others_answers_and_its_writer_gives_none(group):
    state, project = group.project.state(), group.project
    rows = project.step("answer").rows(state)
    assert {row.not_for for row in rows} == {frozenset(["hye"]), frozenset(["min"])}
    [first] = [
        row
        for row in project.form.build(state).tables["test.json"]
        if "ikkobkoett" in row["question"] and row["facet"] == "food"
    ]
    assert first["all_answers"] == ["kimchi", "Kimchi!", "gimchi", "rice"]
    with pytest.raises(DataError, match=r"no question is left. \d+ images and questions were left out"):
        project.form.build(with_options(state, least_answers=9))


def test_agreement_compares_answers_by_their_words(group):
    figures = {figure.name: figure for figure in group.project.form.agreement(group.project.state())}
    two, every = figures["two people give the same answer"], figures["all people give the same answer"]
    assert two.number.value > every.number.value == 0
    assert two.number.low < two.number.value
    assert figures["Krippendorff's alpha, ratings of models' answers"].missing.endswith("5 are the least")


def test_the_built_culture_is_a_benchmark_with_its_country_in_a_row_of_its_own(group):
    built = group.build()
    assert group.build().files == built.files
    with cultures_in(built.folder):
        benchmark = registry.benchmarks()["culturalvqa_korea"]
        names = [entry.name for entry in benchmark.entries()]
        assert names == [f"culturalvqa_korea{way}" for way in ("", "_fewshot", "_blind", "_country")]
        report = registry.check_data("culturalvqa_korea", None)
        assert report.usable
        assert not any(count.differs for count in report.counts)
        task = registry.task_named("culturalvqa_korea")
        loaded = task.data.load(Settings())
        doc = loaded.rows[0]
        assert (doc["country"], doc["facet"] in ("food", "clothing")) == ("korea", True)
        assert [dict(image.getexif()) for image in loaded.images["image"]] == [{}] * len(loaded.rows)
        country = registry.task_named("culturalvqa_korea_country")
        [text] = country.prompt(country.data.load(Settings()).rows[0]).parts
        assert "South Korea" in text
        fewshot = registry.task_named("culturalvqa_korea_fewshot")
        assert len(fewshot.prompt(fewshot.data.load(Settings()).rows[0]).parts) == 9
        answered = task.score(doc, ["Kimchi"])
        assert (answered.groups["country"], answered.values["exact_match"]) == ("korea", 1.0)
        assert answered.rubric is BENCHMARK.rubrics()[0]
        assert {"country": ("korea",)}.items() <= task.metrics()[0].groups.items()
        assert benchmark.report().field_named("country").places == {"korea": "KR"}
        assert not benchmark.report().is_as_published(names[:1])
    ratings = group.table("ratings")
    assert {tuple(row["ratings"]) for row in ratings} == {(2, 3)}
    assert {row["model"] for row in ratings} == {"some-vlm"}


def test_images_of_the_published_data_are_left_out(group, tmp_path):
    (tmp_path / "culturalvqa" / "images").mkdir(parents=True)
    (tmp_path / "culturalvqa" / "images" / "1.jpg").write_bytes(picture("yellow"))
    row = {"u_id": "1", "question": "Q?", "image": "1.jpg", "all_answers": ["a"]}
    (tmp_path / "culturalvqa" / "test.json").write_text(json.dumps([row]), encoding="utf-8")
    built = group.project.form.build(group.project.state(tmp_path))
    assert "the image is one of the published benchmark" in {row.reason for row in built.dropped}
    assert "yellow.jpg" not in built.images.values()


@pytest.mark.parametrize(
    ("row", "images", "said"),
    [
        (None, {}, "a row per image, in the columns file and licence"),
        ("a.jpg,CC0", {"b.jpg": picture("red")}, "no file 'a.jpg'"),
        ("a.jpg,CC0", dict.fromkeys(("a.jpg", "b.jpg"), picture("red")), "no row for the image 'b.jpg'"),
        ("a.jpg,", {"a.jpg": picture("red")}, "field 'licence'"),
        ("a.png,CC0", {"a.png": picture("red")}, "is JPEG. Expected"),
        ("a.jpg,CC0", {"a.jpg": b"<svg/>"}, "can't be read as an image"),
    ],
)
def test_images_that_can_not_be_used_are_named(tmp_path, row, images, said):
    group = Group(tmp_path, "culturalvqa", {}, name="x", title="X", language="am", place="ET")
    for name, content in images.items():
        group.input(f"images/{name}", content)
    if row:
        group.input("inputs/images.csv", f"file,licence\n{row}\n")
    state = group.project.state()
    assert said in "\n".join(group.project.form.check(state))
    assert not group.project.form.agreement(state)
