"""CulturalVQA's questions: newer and older revisions, local answers, few-shot draws, and what is refused."""

from __future__ import annotations

import hashlib
import json

import datasets
import pytest
from PIL import Image
from support.papers import printed

from culture_tasks.benchmarks.culturalvqa.benchmark import COUNTRIES, EXAMPLES, FACETS, country_of, facet_of
from culture_tasks.benchmarks.culturalvqa.benchmark import load as load_documents
from culture_tasks.data import tables
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

COLOURS = ("red", "green", "blue", "white", "black", "yellow")


def rows_of(doc):
    """Rows of the examples that are shown before a question."""
    return [example["row"] for example in doc["examples"]]


def row(number, **changes):
    full = {
        "u_id": f"q{number}",
        "image": f"{number}.png",
        "question": f"What is thing {number}?",
        "facet": "Food",
        "country": "India",
        "all_answers": ["naan", f"bread {number}"],
        "entities": ["plate", "hand"],
    }
    return {name: value for name, value in (full | changes).items() if value is not ...}


@pytest.fixture
def folder(tmp_path):
    """Returns what writes rows as test file, and images for them, and gives the data folder."""
    (tmp_path / "culturalvqa" / "images").mkdir(parents=True)
    for number, colour in enumerate(COLOURS):
        Image.new("RGB", (8, 8), colour).save(tmp_path / "culturalvqa" / "images" / f"{number}.png")

    def put(*rows):
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        (tmp_path / "culturalvqa" / "test.jsonl").write_text(text, encoding="utf-8")
        return tmp_path

    return put


@pytest.fixture
def hub(monkeypatch):
    """Puts rows where the Hub's would be."""

    def put(*rows):
        data = datasets.Dataset.from_list(list(rows))
        monkeypatch.setattr(tables, "load_split", lambda *_, **__: (data, "c0"))

    return put


def load(variant, folder, **settings):
    return load_documents(variant, Settings(data=folder, **settings))


def refused(folder, variant="blind"):
    with pytest.raises(DataError) as caught:
        load(variant, folder)
    return str(caught.value)


def test_countries_and_facets_are_the_paper_s_in_many_spellings():
    countries, facets = (
        printed("culturalvqa", listed).strip().replace("and ", "").split(", ") for listed in ("countries", "facets")
    )
    assert {country_of(name) for name in countries} == set(COUNTRIES)
    assert {facet_of(name) for name in facets} == set(FACETS)
    others = {"U.S.A.": "usa", "united_states_of_america": "usa", "TÜRKİYE": "turkey", "P.R. China": "china"}
    others |= dict.fromkeys(["", "Peru", "Indiana", "China, India", "Niger", "中国", "usa canada"], "")
    assert {text: country_of(text) for text in others} == others
    stems = {"Drink": "drinks", "Clothes": "clothing", "traditions_and_customs": "traditions"}
    stems |= dict.fromkeys(["", "music", "seafood"], "")
    assert {text: facet_of(text) for text in stems} == stems


def test_a_document_holds_what_the_row_says_and_of_what_few_variants_show_only_its_own(folder):
    data = folder(*(row(number) for number in range(4)))
    image = data / "culturalvqa" / "images" / "0.png"
    doc = load("vlm", data).rows[0]
    assert doc == {
        "id": "q0",
        "question": "What is thing 0?",
        "references": ["naan", "bread 0"],
        "country": "india",
        "facet": "food",
        "image_id": hashlib.sha256(image.read_bytes()).hexdigest()[:16],
        "data": doc["data"],
    }
    assert load("blind", data).rows[0] == doc
    assert load("country", data).rows[0] == doc | {"country_name": "India"}
    assert load("lens", data).rows[0] == doc | {"entities": "plate, hand"}
    fewshot = load("fewshot", data).rows[0]
    assert sorted(rows_of(fewshot)) == [1, 2, 3]
    assert {**doc, "examples": fewshot["examples"]} == fewshot


def test_an_older_revision_of_the_hub_has_no_answers_and_a_newer_one_may_have_further_columns(hub):
    image = {"bytes": b"not looked at", "path": None}
    hub({"image": image, "question": "What?"}, {"image": image, "question": "Who?"})
    facts = [(doc["id"], doc["references"], doc["country"], doc["facet"]) for doc in load("blind", None).rows]
    assert facts == [("0", [], "", ""), ("1", [], "", "")]
    hub(row(0, image=..., release="2", annotator=3))
    assert load("blind", None).rows[0]["references"] == ["naan", "bread 0"]


def test_answers_are_read_as_a_list_in_every_form_that_files_give(folder):
    forms = (
        (["naan", "", None, "  "], ["naan"]),
        ('["naan", "it\'s \\"roti\\""]', ["naan", 'it\'s "roti"']),
        ("['naan', \"it's roti\"]", ["naan", "it's roti"]),
        ("['naan' \"it's roti\"\n 'flat bread']", ["naan", "it's roti", "flat bread"]),  # as NumPy writes it
        ("naan, roti", ["naan, roti"]),
        (" naan ", [" naan "]),
        ("['naan', None, '', nan]", ["naan"]),
        ('["ナン", "烤饼", "خبز"]', ["ナン", "烤饼", "خبز"]),
    )
    documents = load("blind", folder(*(row(n, all_answers=form) for n, (form, _) in enumerate(forms)))).rows
    assert [doc["references"] for doc in documents] == [references for _, references in forms]


def test_a_csv_file_as_pandas_writes_it_loads_like_the_json_and_has_its_fingerprint(folder, tmp_path):
    import numpy
    import pandas

    wanted = load("lens", folder(row(0), row(1, facet=""))).rows
    assert load("blind", tmp_path).rows[0]["data"] == wanted[0]["data"]
    assert load("blind", folder(row(0), row(1))).rows[0]["data"] != wanted[0]["data"]
    (tmp_path / "culturalvqa" / "test.jsonl").unlink()
    frame = pandas.DataFrame([row(0), row(1, facet="")])
    frame["all_answers"] = frame["all_answers"].map(numpy.array)
    frame.to_csv(tmp_path / "culturalvqa" / "test.csv", index=False)
    assert load("lens", tmp_path).rows == wanted


def test_answers_are_in_all_rows_or_withheld_in_all(folder):
    documents = load("blind", folder(row(0, all_answers=...), row(1, all_answers=[]))).rows
    assert [doc["references"] for doc in documents] == [[], []]
    said = refused(folder(row(0), row(1, all_answers=[]), row(2, all_answers=...)))
    assert "row 2, field 'all_answers': found nothing, here and in 1 more rows while others have answers" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answers": ["x"]}, "the columns 'all_answers' and 'answers' mean the same"),
        *(
            ({"all_answers": written}, "row 2, field 'all_answers")
            for written in ("[naan, roti]", "[1, 2]", "['a', ['b']]", "['a'] + ['b']", "['a'", 7)
        ),
    ],
)
def test_a_row_that_can_not_be_used_is_named(folder, change, said):
    data = folder(row(0), row(1, **change))
    assert refused(data).startswith(str(data / "culturalvqa" / "test.jsonl"))
    assert said in refused(data)


def test_countries_and_facets_that_are_none_of_the_paper_s_are_in_no_group(folder):
    data = folder(row(0, country="Peru"), row(1, country="Niger", facet="Music"), row(2, facet="Ritualls"))
    documents = load("country", data).rows
    assert [doc["country"] for doc in documents] == ["", "", "india"]
    assert [doc["country_name"] for doc in documents] == ["Peru", "Niger", "India"]
    assert [doc["facet"] for doc in documents] == ["food", "", "rituals"]


@pytest.mark.parametrize(("variant", "field"), [("country", "country"), ("lens", "entities")])
def test_what_a_baseline_shows_must_be_there(folder, variant, field):
    for value in (..., ""):
        data = folder(row(0), row(1, **{field: value}))
        assert f"row 2, field '{field}': found nothing. culturalvqa_{variant} shows it" in refused(data, variant)
    assert len(load("vlm", data).rows) == 2


def test_local_answers_are_joined_on_the_id(folder):
    data = folder(row(1, all_answers=..., country=..., facet="drink"), row(0, all_answers=...))
    answers = "u_id,all_answers,country\nq0,\"['tea', 'chai']\",China\nq1,lassi,\nmore,unused,\n"
    (data / "culturalvqa" / "answers.csv").write_text(answers, encoding="utf-8")
    first, second = load("blind", data).rows
    assert (first["id"], first["references"], first["country"], first["facet"]) == ("q1", ["lassi"], "", "drinks")
    assert (second["references"], second["country"]) == (["tea", "chai"], "china")


def test_local_answers_may_be_one_object_and_belong_to_the_hub_s_questions(tmp_path, hub):
    (tmp_path / "culturalvqa").mkdir()
    hub(*({"id": number, "question": "What?"} for number in range(3)))  # "id" is another name of the column
    answers = {"1": ["lassi", "buttermilk"], "0": "naan", "2": "['naan']"}
    content = json.dumps({name: {"answers": texts} for name, texts in answers.items()})
    (tmp_path / "culturalvqa" / "answers.json").write_text(content, encoding="utf-8")
    references = [doc["references"] for doc in load("blind", tmp_path).rows]
    assert references == [["naan"], ["lassi", "buttermilk"], ["naan"]]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("json", '{"q0": {"answers": 5}}', ", row 1, field 'all_answers': found 5. Expected a list"),
        ("json", '"naan"', ', line 1: found "naan". Expected a list of objects'),
        ("csv", "u_id,all_answers\nq0,\n", ", row 2, field 'all_answers': found ''. Expected at least one"),
        ("csv", "u_id,all_answers\nq0,a\nq0,a\n", ", row 3, field 'u_id': 'q0' is also the id of"),
        ("csv", "u_id,all_answers\nq2,naan\n", ": found no answer for "),
    ],
)
def test_local_answers_that_can_not_be_used_are_named(folder, name, content, said):
    path = folder(row(0), row(1), row(2)) / "culturalvqa" / f"answers.{name}"
    path.write_text(content, encoding="utf-8")
    assert f"{path}{said}" in refused(folder(row(0), row(1), row(2)))


def test_examples_are_other_questions_about_other_images(folder):
    # questions 0 and 1 are about image 0 by two of its names, and 2 about a copy of it: none may be shown for another
    (folder() / "culturalvqa" / "copy.png").write_bytes((folder() / "culturalvqa" / "images" / "0.png").read_bytes())
    names = ["0.png", "images/0.png", "copy.png", "1.png", "2.png", "3.png", "3.png", "4.png"]
    documents = load("fewshot", folder(*(row(n, image=name) for n, name in enumerate(names)))).rows
    for index, doc in enumerate(documents):
        assert len(set(rows_of(doc))) == EXAMPLES == len(rows_of(doc))
        assert index not in rows_of(doc)
    assert all(set(rows_of(doc)) <= {3, 4, 5, 6, 7} for doc in documents[:3])
    assert 6 not in rows_of(documents[5])
    assert 5 not in rows_of(documents[6])


def test_questions_about_one_image_have_one_image_id_and_text_variants_do_without_files(folder, hub):
    data = folder(row(0), row(1, image="images/0.png"), row(2))
    for variant in ("vlm", "blind"):
        ids = [doc["image_id"] for doc in load(variant, data).rows]
        assert ids[0] == ids[1] != ids[2]
    data = folder(row(0, image="gone.png"), row(1, image="gone.png"), row(2, image=...))
    ids = [doc["image_id"] for doc in load("blind", data).rows]
    assert ids[0] == ids[1] != ids[2] == ""
    hub(*(row(number, image={"bytes": bytes([number // 2]), "path": None}) for number in range(4)))
    ids = [doc["image_id"] for doc in load("blind", None).rows]
    assert ids[0] == ids[1] != ids[2] == ids[3]


def test_the_few_shot_variant_needs_answers_images_and_enough_of_them(folder):
    data = folder(*(row(number, all_answers=...) for number in range(5)))
    assert "row 1, field 'all_answers': found nothing. culturalvqa_fewshot shows it" in refused(data, "fewshot")
    data = folder(row(0), row(1), row(2), row(3, image="nowhere.png"))
    assert "row 4, field 'image': no file 'nowhere.png'" in refused(data, "fewshot")
    # question 2 (row 2) is about image 1 like rows 3-5: one question is left
    data = folder(row(0), row(1), row(2, image="1.png"), row(3, image="1.png"), row(4, image="1.png"))
    said = refused(data, "fewshot")
    assert "row 2: culturalvqa_fewshot shows 3 questions about other images, and there are 1" in said
