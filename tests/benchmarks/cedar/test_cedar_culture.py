"""A language that a group adds to CEDAR, and new scenes: scripted people and models through all steps."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image
from support import cedar_data
from support.groups import SKIP, Group, fill_in, with_options

from culture_tasks.benchmarks.cedar.benchmark import BENCHMARK
from culture_tasks.benchmarks.cedar.culture import FORM, CedarWork
from culture_tasks.benchmarks.cedar.documents import prompt_file
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, MODALITIES
from culture_tasks.benchmarks.cedar.reading.choice import read_reply
from culture_tasks.benchmarks.cedar.reading.mentions import AddedWords
from culture_tasks.benchmarks.cedar.scenes import PIECES, decide, row_name
from culture_tasks.benchmarks.culture_forms import MODEL, Config, Entry, NothingBuiltError, State
from culture_tasks.benchmarks.cultures import BuiltCulture
from culture_tasks.benchmarks.interface import Picture
from culture_tasks.cultures.building import build
from culture_tasks.cultures.collecting import collect
from culture_tasks.cultures.giving_out import give_out
from culture_tasks.cultures.project import problems_with
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings
from culture_tasks.text_tables import write_csv

WORDS = "خشم انزجار ترس شادی غم تعجب سرگرمی هیبت رضایت اشتیاق خجالت درد آرامش همدردی"
PERSIAN = dict(zip(EMOTIONS, WORDS.split(), strict=True))
INSTRUCTION = {
    "text_instruction": "روایت زیر را بخوانید و یک احساس را انتخاب کنید.",
    "image_instruction": "تصویر و پرسش زیر را بخوانید و یک احساس را انتخاب کنید.",
    "narrative": "روایت",
    "question": "پرسش",
    "options": "گزینه‌ها",
    "closing": "اکنون، [پاسخ شما]:",
}
GOLD = EMOTIONS[:6]  # of scenes 1 to 12, by turns


def project(folder, way="language", **options):
    about = {"name": "iran", "title": "Iran", "way": way, "language": "fa", "place": "IR"}
    options = {"second_text": 12, "second_multimodal": 12, **options}
    return Group(folder, "cedar", {"a": [], "b": []}, **about, options=options).project


def english(folder):
    """Writes English scenes, of which the third image and the fourth have no narrative, as in the release."""
    for kind in ("multilingual", "text"):
        questions = {at: f"How do you feel in room {at} ({kind})?" for at in range(1, 13)}
        untold = (3, 4) if kind == "multilingual" else ()
        narratives = {at: "" if at in untold else f"You enter room {at}." for at in questions}
        rows = [cedar_data.row(at, "en", "awe", narrative=narratives[at], question=questions[at]) for at in questions]
        cedar_data.write_folder(folder, {"en": rows}, images=kind == "multilingual")
    return folder


def number_of(row):
    return int(row.name.rpartition("-")[2])


def translated(row):
    found = {"question": f"پرسش {row.name}؟"}
    return found | ({"narrative": f"روایت {row.name}."} if "Original narrative" in row.facts else {})


def words(project, data):
    fill_in(project, data, "words", "a", lambda row: {"translation": (PERSIAN | INSTRUCTION)[row.name]})
    fill_in(project, data, "words_back", "b", lambda row: {"english": row.name})


@pytest.fixture
def begun(tmp_path):
    """A project in which nobody has done anything yet, and its data folder."""
    return project(tmp_path / "iran"), english(tmp_path / "data")


@pytest.fixture
def unlabelled(begun):
    """All steps before the labels: a skips scene 11, and b finds scene 12 impossible and corrects scene 1."""
    iran, data = begun
    words(iran, data)
    fill_in(iran, data, "translate", "a", lambda row: SKIP if number_of(row) == 11 else translated(row))

    def checked(row):
        if number_of(row) == 12:
            return {"possible": False}
        fixed = {"question": "پرسش بهتر؟"} if row.name == "text-1" else {}
        return {"possible": True, "fluency": 9, "fidelity": 8} | dict(row.values) | fixed

    assert fill_in(iran, data, "check", "a", checked) == 0  # nobody checks what they translated
    fill_in(iran, data, "check", "b", checked)
    return iran, data


@pytest.fixture
def done(unlabelled):
    """All labels: five label; the fifth is careless and stops after three rows, two contradict the rest on scene 2."""
    iran, data = unlabelled
    right = lambda row: {"emotion": GOLD[(number_of(row) - 1) % 6]}  # noqa: E731

    def contradicting(row):
        return {"emotion": "relief"} if number_of(row) == 2 else right(row)

    for person, answer in (("p1", right), ("p2", right), ("p3", contradicting), ("p4", contradicting)):
        fill_in(iran, data, "label", person, answer)
    stopped = iter(range(3))
    fill_in(iran, data, "label", "p5", lambda row: {"emotion": "awe"} if next(stopped, None) is not None else None)
    fill_in(iran, data, "label", "p6", right)
    for person in ("q1", "q2"):
        fill_in(iran, data, "second", person, right)
    return iran, data


def built_culture(project, data):
    """Returns what a form builds, and the culture in its folder."""
    state = project.state(data)
    built = project.form.build(state)
    told = "write" if project.config.way == "scenes" else "translate"
    brought = [row for row in project.step(told).rows(state) if not row.writer or state.entries[told].get(row.name)]
    names = [one.row for one in built.dropped]
    assert len(set(names)) == len(names)
    assert len(brought) == len(names) + sum(map(len, built.tables.values()))  # every row is built, or says why not
    return built, build(project, Settings(data=data)).culture


def test_a_language_goes_through_all_steps(done):
    iran, data = done
    state = iran.state(data)
    scenes = {scene.row: scene for scene in CedarWork(state).scenes}
    # p5 labels text 1 to 3 alone, as awe. Of scene 2, p6 decides image-2 (3 disgust, 2 relief); text-2 has no majority
    # among six (3 disgust, 2 relief, 1 awe), and waits for a seventh.
    assert scenes["text-2"].decision == (None, None, 7)
    assert scenes["image-2"].decision == ("disgust", "relief", 5)
    # Nobody gives second labels who had another part.
    assert {row.not_for for row in iran.step("second").rows(state)} == {
        frozenset("ab") | {f"p{at}" for at in range(1, 7)}
    }
    assert {row.not_for for row in iran.step("label").rows(state)} == {frozenset({"q1", "q2"})}
    built, culture = built_culture(iran, data)
    ids = {name: [row["id"] for row in rows] for name, rows in built.tables.items()}
    every = [str(at) for at in range(1, 11)]
    assert ids == {"iran_nq.json": [at for at in every if at != "2"], "iran_inq.json": every}
    first = built.tables["iran_nq.json"][0]
    assert first == {
        "id": "1",
        "narrative": "روایت text-1.",
        "question": "پرسش بهتر؟",
        "answer": "خشم",
        "english_ver_answer": "anger",
        "minority": None,
    }
    assert built.tables["iran_inq.json"][1]["minority"] == "relief"
    assert built.tables["iran_inq.json"][2]["narrative"] == ""
    assert {(one.row, one.reason) for one in built.dropped} == {
        ("text-2", "6 of 7 labels"),
        *((f"{kind}-11", "skipped") for kind in ("image", "text")),
        *((f"{kind}-12", "impossible in the culture") for kind in ("image", "text")),
    }
    figures = {(one.name, one.group): one for one in FORM.agreement(state)}
    assert figures["mean fluency", "check"].number.value == 9.0
    assert figures["mean fidelity", "check"].printed == "9.16"
    assert figures["alpha, second labels and gold", "multimodal"].number[::3] == (1.0, 10)
    assert figures["alpha, second labels and gold", "text"].missing == "9 of the 10 that it needs at least"
    raw = figures["raw agreement of the first labels", "multimodal"]
    assert raw.number.value == pytest.approx((9 + 0.4) / 10)  # scene 2: 4 of 10 pairs agree (3 of disgust, 1 of relief)
    assert built.marks == [
        "How well other people agree with its labels (text) isn't known: 9 of the 10 that it needs at least."
    ]
    assert FORM.build(state) == built
    # The benchmark of what was built.
    benchmark = BENCHMARK.culture(culture)
    group, *tasks = benchmark.entries()
    assert [group.name, *(task.name for task in tasks)] == ["cedar_iran", "cedar_iran_text", "cedar_iran_multimodal"]
    assert benchmark.check(None).problems == []
    for task in tasks:
        documents = task.data.load(Settings())
        assert [row["id"] for row in documents.rows] == ids[f"iran_{'nq' if task is tasks[0] else 'inq'}.json"]
        assert (documents.images is not None) == task.shows_images
    doc = tasks[0].data.load(Settings()).rows[0]
    assert tasks[0].prompt(doc).parts == (
        f"{INSTRUCTION['text_instruction']}\n\n[روایت]: روایت text-1.\n[پرسش]: پرسش بهتر؟\n\n"
        f"[گزینه‌ها]: {', '.join(PERSIAN.values())}\n{INSTRUCTION['closing']}",
    )
    record = tasks[0].score(doc, ["پاسخ: خَشم", "anger", "ترس", "شاید"])
    assert record.labels == ["anger", "anger", "fear", None]
    assert record.score == 0.5
    assert record.groups["culture"] == "iran"
    assert record.prompt.name == "text_iran.by_group"
    values = {metric.name: metric for metric in tasks[0].metrics()}
    assert values["lsepp_anger"].value([record.values["lsepp_anger"]]) == 0.5  # 2 predictions of 4 gold labels
    assert values["unparsed"].stderr([record.values["unparsed"]] * 2) == pytest.approx(0.0)
    report = benchmark.report()
    assert report.field_named("culture").places == {"iran": "IR"}
    assert not report.is_as_published(["cedar_iran_text"])


def test_sheets_of_labels_have_the_words_of_the_language(unlabelled, tmp_path):
    iran, data = unlabelled
    given = give_out(iran, iran.state(data), "label", tmp_path / "sheets", people=["a"])
    page = (tmp_path / "sheets" / f"{given.sheets[0].name}.html").read_text(encoding="utf-8")
    assert f'<span dir="auto">{PERSIAN["awe"]}</span>' in page
    assert '<span dir="auto">awe</span>' not in page
    path = tmp_path / "sheets" / f"{given.sheets[0].name}.csv"
    header, *lines = csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
    place = next(at for at, name in enumerate(header) if name.startswith("emotion:"))
    assert all(word in header[place] for word in PERSIAN.values())
    lines = [[PERSIAN["awe"] if at == place else cell for at, cell in enumerate(line)] for line in lines]
    write_csv(path, header, lines)
    assert {line.outcome for line in collect(iran, [path], data).lines} == {"new"}
    (scene,) = [scene for scene in CedarWork(iran.state(data)).scenes if scene.row == "text-3"]
    assert scene.labels("label") == ["awe"]


def test_images_of_the_release_are_taken_over(done):
    iran, data = done
    state = iran.state(data)
    assert FORM.images(state)["1.png"] == data / "cedar" / "images" / "1.png"
    assert list(FORM.check(state)) == []
    (iran.folder / "inputs").mkdir()
    (iran.folder / "inputs" / "scenes.json").write_text(
        json.dumps([{"id": "x", "narrative": "", "question": "How?", "image": "../../secret.png"}])
    )
    (problem,) = FORM.check(iran.state(data))
    assert "no image '../../secret.png'" in problem


def test_without_scenes_the_message_says_where_they_belong(tmp_path):
    iran = project(tmp_path / "iran")
    (problem,) = FORM.check(iran.state(None))
    assert "inputs/scenes.json" in problem
    with pytest.raises(DataError, match="row 'anger': nobody has translated it"):
        FORM.build(iran.state(None))


def test_what_falls_out_is_known_before_anything_can_be_built(unlabelled):
    iran, data = unlabelled
    with pytest.raises(NothingBuiltError, match="no scene has a gold label") as error:
        FORM.build(iran.state(data))
    reasons = {one.row: one.reason for one in error.value.dropped}
    assert (len(reasons), reasons["text-11"], reasons["text-1"]) == (24, "skipped", "0 of 5 labels")


def test_a_scene_that_two_people_skip_is_given_to_nobody_else(begun):
    iran, data = begun
    for person, people in (("a", 1), ("b", 0)):
        fill_in(iran, data, "translate", person, lambda row: SKIP if row.name == "text-3" else None)
        (row,) = [row for row in iran.step("translate").rows(iran.state(data)) if row.name == "text-3"]
        assert row.people == people


def test_scenes_of_people_who_have_left_stay_and_those_without_an_origin_are_listed(tmp_path):
    new = project(tmp_path / "new", "scenes", **NEW)
    texts = {"narrative": "مهمان هدیه را نمی‌گیرد.", "question": "چه حسی داری؟"}
    for row, person in (("blank-c-1", "c"), ("seed-1", "a")):
        new.add([Entry(step="write", row=row, person=person, values=texts)], "test")
    assert reasons(new, None) == {
        "blank-c-1": "nobody has checked it",
        "seed-1": "its sentence, image or original is no longer there",
    }


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ({"closing": "{x}"}, {}, "Expected no braces"),
        ({"awe": "\u064b"}, {}, "Expected a word with letters"),
        ({"fear": "خشم"}, {}, "are alike once case and accents are set aside"),
        ({}, {"further_words": ["anger"]}, "Expected 'emotion=form'"),
        ({}, {"further_words": ["angre=x"]}, "'angre' is no gold label"),
        ({}, {"floor_multimodal": 1.1}, "alpha, second labels and gold, multimodal: 1.00. Expected at least 1.1"),
    ],
)
def test_words_and_options_that_can_t_be_used_are_refused(done, words, options, message):
    iran, data = done
    iran.add([Entry(step="words", row=row, person="a", values={"translation": words[row]}) for row in words], "test")
    with pytest.raises(DataError, match=message):
        FORM.build(with_options(iran.state(data), **options))


@pytest.mark.parametrize(
    ("values", "told", "why"),
    [
        ({}, ("روایت text-3.", "پرسش text-3؟"), None),  # nothing but ratings: the translation stands
        ({"narrative": "الف", "question": "ب"}, ("الف", "ب"), None),
        ({"question": "ب"}, ("", "ب"), "its narrative is missing"),  # it was deleted, and the original has one
        ({"narrative": "الف"}, ("الف", "پرسش text-3؟"), None),
    ],
)
def test_what_a_check_leaves_of_a_text(done, values, told, why):
    iran, data = done
    rated = {"possible": True, "fluency": 9, "fidelity": 8}
    iran.add([Entry(step="check", row="text-3", person="b", values=rated | values)], "test")
    (scene,) = [scene for scene in CedarWork(iran.state(data)).scenes if scene.row == "text-3"]
    assert (scene.why_unlabelled and scene.why_unlabelled[1], scene.text) == (why, told)


def test_drafts_that_nobody_changed_are_counted_and_limited(done):
    iran, data = done
    rows = [row for row in iran.step("translate").rows(iran.state(data)) if row.name.startswith("text")]
    drafts = {row.name: translated(row) if number_of(row) < 5 else {"question": "چه؟"} for row in rows[:8]}
    iran.add([Entry(step="translate", row=row, person="model:m", values=drafts[row]) for row in drafts], "test")
    refusal = r"2 of 7 rows are drafts of a model that nobody changed, more than the share of 0.2"
    with pytest.raises(DataError, match=refusal):
        FORM.build(with_options(iran.state(data), most_unchanged_drafts=0.2))
    # Of the 8 drafts, text-2 isn't built; b corrected text-1.
    mark = "2 of 7 drafts of a model (m) stand as they were; people rewrote the others."
    assert mark in FORM.build(iran.state(data)).marks


@pytest.mark.parametrize("modality", MODALITIES)
def test_the_prompt_of_english_words_is_the_paper_s(tmp_path, modality):
    entries = {
        "words": {
            name: [Entry(step="words", row=name, person="a", values={"translation": text})]
            for name, text in {**{emotion: emotion for emotion in EMOTIONS}, **PIECES}.items()
        }
    }
    options = {option.name: option.default for option in FORM.options("language")}
    config = Config(name="x", title="X", like="cedar", language="en", place="GB", way="language", options=options)
    facts = CedarWork(State(config=config, folder=tmp_path, entries=entries)).facts()
    assert facts["prompts"][modality] == prompt_file("en", modality).text


RULES = {"labels": 5, "further_labels": 2, "minority_labels": 2}


@pytest.mark.parametrize(
    ("rule", "labels", "expected"),
    [
        ("majority", "aaabb", ("anger", "fear", 5)),
        ("majority", "aaabc", ("anger", None, 5)),
        ("majority", "aabbc", (None, None, 7)),
        ("majority", "aabbcaa", ("anger", "fear", 7)),
        ("majority", "aabbcac", (None, None, 7)),
        ("majority", "aaab", (None, None, 5)),
        ("plurality", "aabcd", ("anger", None, 5)),
        ("plurality", "aabbc", (None, None, 7)),
        ("plurality", "aabbccd", (None, None, 7)),
        ("majority_then_plurality", "aabcd", (None, None, 7)),
        ("majority_then_plurality", "aabcdad", ("anger", "sadness", 7)),
        ("majority_then_plurality", "aabbcde", (None, None, 7)),
        ("majority_then_plurality", "aaabbcc", ("anger", None, 7)),
        ("majority", "", (None, None, 5)),
    ],
)
def test_gold_labels_by_rule(rule, labels, expected):
    names = {"a": "anger", "b": "fear", "c": "awe", "d": "sadness", "e": "pain"}
    assert decide([names[one] for one in labels], {**RULES, "gold_rule": rule}) == expected


def test_names_of_rows_hold_any_id():
    assert row_name("text", "12") == "text-12"
    assert row_name("text", "a b/ü").startswith("text-a-b---")
    assert row_name("text", "a b") != row_name("text", "a/b")


def test_forms_in_replies():
    korean = AddedWords("ko", {"분노": "anger", "분노*": "anger", "슬픔": "sadness", "기쁨": "happiness"})
    thai = AddedWords("th", {"ความโกรธ": "anger", "ความกลัว": "fear"})
    bengali = AddedWords("bn", {"রাগ": "anger"})
    peru = AddedWords("es", {"roche": "embarrassment", "pena": "embarrassment"})
    for words, reply, expected in (
        (korean, "분노", "anger"),
        (korean, "정답은 분노입니다.", "anger"),
        (korean, "정답은 슬픔입니다.", None),  # the group gave no open form of it
        (korean, "슬픔", "sadness"),
        (korean, "분노 또는 슬픔", None),
        (korean, "I choose sadness.", "sadness"),
        (korean, "hasira", None),  # another language's word
        (thai, "คำตอบคือความโกรธค่ะ", "anger"),
        (bengali, "রাগ", "anger"),
        (bengali, "রাগি", None),  # the word goes on with a vowel sign
        (AddedWords("am", {"ቁጣ": "anger", "ደስታ": "happiness"}), "መልሱ፦ ቁጣ።", "anger"),
        (AddedWords("am", {"ቁጣ": "anger"}), "ቁጣው", None),
        (peru, "Roche.", "embarrassment"),
        (peru, "pena", "embarrassment"),
        (peru, "No es enojo, es tristeza.", "sadness"),
        (peru, "anger", "anger"),
        (AddedWords("fa", {"": "awe", "*": "awe", "(": "pain"}), "nothing fits.", None),
        (AddedWords("fa", {}), "fear", "fear"),
    ):
        assert read_reply(reply, words) == expected, reply


@pytest.mark.parametrize(
    "facts",
    [
        {"prompts": {}},
        {"prompts": [], "forms": {}},
        {"prompts": {"text": 1}, "forms": {}},
        {"prompts": {"text": "{narrative} {answer}"}, "forms": {}},
        {"prompts": {"text": "{narrative}"}, "forms": {"x": "joy"}},
    ],
)
def test_facts_that_can_t_be_used_are_refused(facts):
    names = {"name": "iran", "title": "Iran", "like": "cedar", "way": "language", "language": "fa", "place": "IR"}
    with pytest.raises(DataError, match="Build the culture again"):
        BENCHMARK.culture(BuiltCulture(folder=Path("x"), **names, files={}, marks=(), facts=facts))


# New scenes

NEW = {"shortest": 10, "longest": 80, "blanks": 3, "contrast_languages": ["en"]}
SEEDS = "id,sentence\n1,Guests leave early.\n2,A gift is refused.\n3,A child sings.\n"


def ask(project, data, step, model, replies):
    """Has a model fill in a step: what it is shown, and what its replies are read as."""
    found, shown = project.step(step), {}
    for row in found.rows(project.state(data)):
        shown[row.name] = found.ask.prompt(row)
        values = found.ask.read(replies[row.name] if isinstance(replies, dict) else replies)
        assert problems_with(found.columns, values) == []
        project.add([Entry(step=step, row=row.name, person=f"{MODEL}{model}", values=values)], "test")
    return shown


def reasons(project, data):
    return {one.row: one.reason for one in CedarWork(project.state(data)).dropped_scenes.values()}


def test_new_scenes_go_through_all_steps(tmp_path):
    data = english(tmp_path / "data")
    new = project(tmp_path / "new", "scenes", **NEW)
    (problem,) = FORM.check(project(tmp_path / "nobody", "scenes", blanks=0).state(None))
    assert "inputs/seeds.csv" in problem
    (new.folder / "inputs").mkdir()
    (new.folder / "inputs" / "seeds.csv").write_text(SEEDS)
    (new.folder / "images").mkdir()
    for at in (1, 2):
        Image.new("RGB", (8, 8), (at, 9, 9)).save(new.folder / "images" / f"my photo {at}.png")
    photos = {at: row_name("image", f"my photo {at}.png") for at in (1, 2)}
    # Drafts of a model: seed 3 has none.
    story = '```JSON\n{"scenario": "home", "narrative": "Guests leave Mr Li.", "question": "How does he feel?"}\n```'
    step = new.step("draft")
    for row in step.rows(new.state(data))[:2]:
        assert f"Here is the given content: {row.facts['Sentence']}\n" in step.ask.prompt(row).parts[0]
        new.add([Entry(step="draft", row=row.name, person="model:m", values=step.ask.read(story))], "test")
    you = '{"refined_narrative": "Guests leave you, sadly.", "refined_question": "How do you feel?"}'
    shown = ask(new, data, "second_person", "m", you)
    assert "[narrative]: Guests leave Mr Li. [question]: How does he feel?" in shown["seed-1"].parts[0]
    replies = {"seed-1": '{"hidden_emotion_narrative": "Guests leave you."}', "seed-2": "No need to modify."}
    shown = ask(new, data, "no_emotion_words", "m", replies)
    assert shown["seed-1"].parts[0].count("[narrative]: Guests leave you, sadly.") == 1
    rows = {row.name: row for row in new.step("write").rows(new.state(data))}
    assert rows["seed-1"].values == {"narrative": "Guests leave you.", "question": "How do you feel?"}
    assert rows["seed-2"].values["narrative"] == "Guests leave you, sadly."
    assert rows[photos[1]].image == "my photo 1.png"
    assert rows["blank-b-3"].writer == "b"
    # a confirms the draft of seed 1, writes seed 2, both photos and three blanks, of which one is CEDAR's, and skips
    # seed 3.
    texts = {
        "seed-1": rows["seed-1"].values,
        "seed-2": {"narrative": "مهمان هدیه را نمی‌گیرد.", "question": "چه حسی داری؟"},
        "blank-a-1": {"narrative": "You enter room 1.", "question": "How do you feel in room 1 (text)?"},
        "blank-a-2": {"narrative": "کوتاه", "question": "چه حسی داری؟"},
        "blank-a-3": {"narrative": "مهمان هدیه را نمی‌گیرد.", "question": "چه حسی داری؟"},
        **{row: {"question": "زن کنار در چه حسی دارد؟"} for row in photos.values()},
    }
    fill_in(new, data, "write", "a", lambda row: SKIP if row.name == "seed-3" else texts.get(row.name))
    unsafe = {"narrative": "همسایه در را می‌شکند.", "question": "چه حسی داری؟"}
    fill_in(new, data, "write", "b", lambda row: unsafe if row.name == "blank-b-1" else None)
    # Filters of models; rows without three provisional labels stay.
    written = [row.name for row in new.step("social").rows(new.state(data))]
    assert written == ["seed-1", "seed-2", photos[1], photos[2], "blank-a-1", "blank-a-2", "blank-a-3", "blank-b-1"]
    ask(new, data, "social", "m", "Social-related")
    ask(new, data, "safe", "m", {name: "unsafe" if name == "blank-b-1" else '"Safe".' for name in written})
    shown = ask(new, data, "provisional", "m1", "fear")
    assert shown["seed-2-fa"].parts[0].startswith("You are a native Persian speaker from a Persian-speaking country.")
    assert f"{photos[1]}-fa" not in shown
    for model in ("m2", "m3"):
        ask(new, data, "provisional", model, dict.fromkeys(shown, "joy") | {"blank-a-2-en": "fear"})
    aligned = '{"rewritten_narrative": "", "rewritten_question": "زن کنار در چه حس می‌کند؟"}'
    shown = ask(new, data, "align", "m", {photos[1]: aligned, photos[2]: aligned})
    assert isinstance(shown[photos[1]].parts[0], Picture)
    assert "زن کنار در چه حس می‌کند؟" in ask(new, data, "with_image", "m", "awe")[photos[1]].parts[1]
    ask(new, data, "without_image", "m", {photos[1]: "relief", photos[2]: "awe"})
    words(new, data)
    checked = lambda row: {"possible": True, "clean": row.name != "seed-1"} | dict(row.values)  # noqa: E731
    fill_in(new, data, "check", "b", checked)
    for person in ("p1", "p2", "p3", "p4", "p5"):
        fill_in(new, data, "label", person, lambda row: {"emotion": "fear"})
    expected = {
        "seed-3": "skipped",
        "blank-b-1": "unsafe, by a model",
        photos[2]: "its image isn't needed: a model names the same emotion without it",
        **dict.fromkeys(("seed-1", "seed-2", "blank-a-1", "blank-a-3"), "the same provisional label in all languages"),
        "blank-a-2": "its narrative has fewer than 10 characters",
    }
    assert reasons(new, data) == expected
    # Without a contrast language the provisional labels say nothing.
    new = project(new.folder, "scenes", **NEW | {"contrast_languages": []})
    fill_in(new, data, "check", "b", checked)
    for person in ("p1", "p2", "p3", "p4", "p5"):
        fill_in(new, data, "label", person, lambda row: {"emotion": "fear"})
    built, culture = built_culture(new, data)
    del expected["seed-2"]
    expected |= {
        "seed-1": "it names an emotion",
        "blank-a-1": "a scene of CEDAR",
        "blank-a-3": "the same text as seed-2",
    }
    assert {one.row: one.reason for one in built.dropped} == expected
    assert {name: [row["id"] for row in rows] for name, rows in built.tables.items()} == {
        "iran_nq.json": ["seed-2"],
        "iran_inq.json": [photos[1]],
    }
    assert built.tables["iran_inq.json"][0]["question"] == "زن کنار در چه حس می‌کند؟"
    assert built.images == {"my photo 1.png": "my photo 1.png"}
    assert built.marks[0] == "1 of 2 drafts of a model (m) stand as they were; people rewrote the others."
    assert "Its scenes were filtered by the emotions that models chose (m, m1, m2, m3)." in built.marks
    assert any("by one culture alone" in mark for mark in built.marks)
    assert [len(task.data.load(Settings()).rows) for task in BENCHMARK.culture(culture).entries()[1:]] == [1, 1]
    # Another culture's labels of the same scenes.
    contrast = new.folder / "inputs" / "contrast_korea.json"
    row = {"id": "seed-2", "narrative": "", "question": "?"}
    contrast.write_text(json.dumps([row | {"english_ver_answer": "feer"}]))
    refusal = r"contrast_korea.json, row 1, field 'english_ver_answer': .* Did you mean 'fear'"
    with pytest.raises(DataError, match=refusal):
        FORM.build(new.state(data))
    contrast.write_text(json.dumps([row | {"english_ver_answer": "Fear"}]))
    assert not any("one culture" in mark for mark in FORM.build(new.state(data)).marks)
    new = project(new.folder, "scenes", **NEW, same_label="drop")
    assert reasons(new, data)["seed-2"] == "the same provisional label in all languages"
    new = project(new.folder, "scenes", **NEW | {"contrast_languages": [], "same_label": "drop"})
    assert reasons(new, data)["seed-2"] == "the same gold label in all cultures"


@pytest.mark.parametrize(
    ("step", "reply", "message"),
    [
        ("draft", "Sorry.", "expected one JSON object"),
        ("draft", '{"narrative": 1, "question": "?"}', "expected JSON with the texts narrative and question"),
        ("no_emotion_words", '{"narrative": "x"}', "expected JSON with the texts hidden_emotion_narrative"),
        ("social", "Perhaps", "expected 'not social-related' or 'social-related'"),
        ("provisional", "fear or awe", "expected one of the 14 emotions"),
    ],
)
def test_replies_of_models_that_can_t_be_read(tmp_path, step, reply, message):
    with pytest.raises(ValueError, match=message):
        project(tmp_path / "new", "scenes").step(step).ask.read(reply)


def test_a_translation_is_drafted_with_the_language_s_name(begun):
    iran, data = begun
    step = iran.step("translate")
    row = step.rows(iran.state(data))[0]
    (prompt,) = step.ask.prompt(row).parts
    assert "from English into Persian" in prompt
    assert "[narrative]: You enter room 1.\n[question]: How do you feel in room 1 (text)?\n" in prompt
    assert step.ask.read('{"narrative": "", "question": "چه؟"}') == {"question": "چه؟"}
