"""CulturalVQA: newer and older revisions, local answers, few-shot examples, and exact match."""

from __future__ import annotations

import hashlib
import json

import datasets
import pytest
from PIL import Image
from support.papers import printed

from culture_tasks.benchmarks.culturalvqa.benchmark import BENCHMARK, COUNTRIES, EXAMPLES, FACETS, country_of, facet_of
from culture_tasks.benchmarks.culturalvqa.exact_match import exact_match, normalised
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.data import tables
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

FULL = {"facet": "Food", "country": "India", "entities": ["plate", "hand"]}


def row(number, **changes):
    asked = {"u_id": f"q{number}", "image": f"{number}.png", "question": f"What is thing {number}?"}
    full = {**asked, **FULL, "all_answers": ["naan", f"bread {number}"], **changes}
    return {name: value for name, value in full.items() if value is not ...}


@pytest.fixture
def folder(tmp_path):
    """Returns what writes rows as test file, and images for them, and gives the data folder."""
    (tmp_path / "culturalvqa" / "images").mkdir(parents=True)
    for number, colour in enumerate(("red", "green", "blue", "white", "black", "yellow")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / "culturalvqa" / "images" / f"{number}.png")

    def put(*rows):
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (tmp_path / "culturalvqa" / "test.jsonl").write_text(text, encoding="utf-8")
        return tmp_path

    return put


def load(variant, folder):
    return task_named(f"culturalvqa{variant and '_'}{variant}").data.load(Settings(data=folder)).rows


def examples_of(doc):
    return [example["row"] for example in doc["examples"]]


def test_countries_and_facets_are_the_paper_s():
    countries, facets = (
        printed("culturalvqa", listed).strip().replace("and ", "").split(", ") for listed in ("countries", "facets")
    )
    assert {country_of(name) for name in countries} == set(COUNTRIES)
    assert {facet_of(name) for name in facets} == set(FACETS)
    assert [country_of(text) for text in ("United States", "", "Peru", "China, India", "Niger")] == ["usa", *[""] * 4]
    assert [facet_of(text) for text in ("Drink", "", "music", "seafood")] == ["drinks", *[""] * 3]


def test_a_document_holds_what_the_row_says_and_of_what_few_variants_show_only_its_own(folder):
    data = folder(*(row(number) for number in range(4)))
    image = data / "culturalvqa" / "images" / "0.png"
    doc = load("", data)[0]
    assert doc == {
        "id": "q0",
        "question": "What is thing 0?",
        "references": ["naan", "bread 0"],
        "country": "india",
        "facet": "food",
        "image_id": hashlib.sha256(image.read_bytes()).hexdigest()[:16],
        "data": doc["data"],
    }
    assert load("blind", data)[0] == doc
    assert load("country", data)[0] == doc | {"country_name": "India"}
    assert load("lens", data)[0] == doc | {"entities": "plate, hand"}
    fewshot = load("fewshot", data)[0]
    assert sorted(examples_of(fewshot)) == [1, 2, 3]
    assert {**doc, "examples": fewshot["examples"]} == fewshot


def test_an_older_revision_of_the_hub_has_no_answers_and_a_newer_one_may_have_further_columns(monkeypatch):
    def hub(*rows):
        data = datasets.Dataset.from_list(list(rows))
        monkeypatch.setattr(tables, "load_split", lambda *_, **__: (data, "c0"))

    image = {"bytes": b"not looked at", "path": None}
    hub({"image": image, "question": "What?"}, {"image": image, "question": "Who?"})
    facts = [(doc["id"], doc["references"], doc["country"], doc["facet"]) for doc in load("blind", None)]
    assert facts == [("0", [], "", ""), ("1", [], "", "")]
    answered = task_named("culturalvqa").score(load("blind", None)[0], ["naan"])
    assert answered.values == {"predictions_for_submission": {"id": "0", "pred": "naan"}}
    hub(row(0, image=..., release="2", annotator=3))
    assert load("blind", None)[0]["references"] == ["naan", "bread 0"]


@pytest.mark.parametrize(
    ("form", "references"),
    [
        (["naan", "", None, "  "], ["naan"]),
        ('["naan", "it\'s \\"roti\\""]', ["naan", 'it\'s "roti"']),
        ("['naan' \"it's roti\"\n 'flat bread']", ["naan", "it's roti", "flat bread"]),  # as NumPy writes it
        ("['naan', None, '', nan]", ["naan"]),  # as Python does
        ("naan, roti", ["naan, roti"]),
        (" naan ", [" naan "]),
    ],
)
def test_answers_are_read_as_a_list_in_every_form_that_files_give(folder, form, references):
    assert load("blind", folder(row(0, all_answers=form)))[0]["references"] == references


def test_local_answers_are_joined_on_the_id(folder):
    data = folder(row(1, all_answers=..., country=..., facet="drink"), row(0, all_answers=...))
    path = data / "culturalvqa" / "answers.csv"
    path.write_text("u_id,all_answers,country\nq0,\"['tea', 'chai']\",China\nq1,lassi,\nmore,unused,\n", "utf-8")
    first, second = load("blind", data)
    assert (first["id"], first["references"], first["country"], first["facet"]) == ("q1", ["lassi"], "", "drinks")
    assert (second["references"], second["country"]) == (["tea", "chai"], "china")
    for rows, said in (
        ("q0,\n", ", row 2, field 'all_answers': found ''. Expected at least one"),
        ("q0,a\nq0,a\n", ", row 3, field 'u_id': 'q0' is also the id of"),
        ("q2,naan\n", ": found no answer for "),
    ):
        path.write_text(f"u_id,all_answers\n{rows}", "utf-8")
        with pytest.raises(DataError) as error:
            load("blind", data)
        assert f"{path}{said}" in str(error.value)
        [problem] = BENCHMARK.check(Settings(data=data)).problems
        assert f"{path}{said}" in problem


def test_examples_are_other_questions_about_other_images(folder):
    # questions 0 and 1 are about image 0 by two of its names, and 2 about a copy of it: none may be shown for another
    (folder() / "culturalvqa" / "copy.png").write_bytes((folder() / "culturalvqa" / "images" / "0.png").read_bytes())
    names = ["0.png", "images/0.png", "copy.png", "1.png", "2.png", "3.png", "3.png", "4.png"]
    documents = load("fewshot", folder(*(row(n, image=name) for n, name in enumerate(names))))
    assert documents[0]["image_id"] == documents[1]["image_id"] == documents[2]["image_id"] != documents[3]["image_id"]
    for index, doc in enumerate(documents):
        assert len(set(examples_of(doc))) == EXAMPLES == len(examples_of(doc))
        assert index not in examples_of(doc)
    assert all(set(examples_of(doc)) <= {3, 4, 5, 6, 7} for doc in documents[:3])
    assert 6 not in examples_of(documents[5])
    with pytest.raises(DataError, match="row 1: culturalvqa_fewshot shows 3 questions about other images, and there"):
        load("fewshot", folder(row(0), row(1)))


# Exact match after VQA-style normalisation

NORMAL = {
    "  the  Naan \n": "naan",
    "a plate of an Indian dish": "plate of indian dish",
    "Ice-cream": "ice cream",
    "it’s": "its",
    "U.S.A.": "usa",
    "3.5": "3.5",
    "1,000,000 people": "1000000 people",
    "red,white": "red white",
    "Ten lamps": "10 lamps",
    "none": "0",
    "eleven": "eleven",
    "ＮＡＡＮ": "naan",
    "(naan)!?": "naan",
    "Straße": "strasse",
    "饺子。": "饺子",
    "the": "",
}


def test_a_prediction_matches_any_reference_in_its_normal_form():
    assert {answer: normalised(answer) for answer in NORMAL} == NORMAL
    assert exact_match("The Naan.", ["roti", "naan"]) == exact_match("two", ["2"]) == 1.0
    # the VQA evaluation keeps % and $; nothing is left of "the" and "a" after normalisation: nothing was said
    others = [("naan bread", ["naan"]), ("", ["naan"]), ("5%", ["5"]), ("the", ["a"]), ("naan", [])]
    assert [pair for pair in others if exact_match(*pair) != 0.0] == []
