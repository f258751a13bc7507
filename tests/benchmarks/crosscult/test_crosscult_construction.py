import pytest
from support.crosscult_cases import raw_cases

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.crosscult.documents import Release
from culture_tasks.benchmarks.crosscult.draw import make_draw
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.vocabulary import LOCALITY_ROLES, SINGLE_ROLES
from culture_tasks.benchmarks.interface import Group, Task

SIX = {f"s{number}": topic for number, topic in enumerate(("social", "religious", "ethical") * 2)}


@pytest.fixture(scope="module")
def release():
    raw = raw_cases(SIX, 3)
    return Release(raw, make_draw(raw))


ENTRIES = registry.benchmarks()["crosscult"].entries()
TASKS = {entry.name: entry for entry in ENTRIES if isinstance(entry, Task)}
GROUPS = [entry.name for entry in ENTRIES if isinstance(entry, Group)]


def documents(release, task):
    """Returns the documents that a task makes of a release, without the images that its loader adds."""
    build = TASKS[task].data.load.args[0]
    return list(build(release))


def tasks_of(name):
    return tuple(task.name for task in registry.tasks_below(name))


def test_every_document_has_every_field_and_an_id_of_its_own_and_the_diagnostic_inserts_nothing(release):
    for task in TASKS:
        docs = documents(release, task)
        assert docs
        assert all(doc.keys() == docs[0].keys() for doc in docs)
        assert len({doc["id"] for doc in docs}) == len(docs)
        assert all(bool(doc["reference"]) == (doc["role"] not in LOCALITY_ROLES) for doc in docs)
        assert all(doc["language"] in TASKS[task].languages for doc in docs)
    diagnostic = documents(release, "crosscult_diagnostic")
    assert all((doc["insertions"], doc["order"], doc["step"]) == ([], [], 0) for doc in diagnostic)


def test_all_tasks_of_a_group_have_the_same_cases_in_the_same_order(release):
    for group in ("crosscult_single", "crosscult_sequential", *(name for name in GROUPS if "retention_" in name)):
        cases = [[doc["case_id"] for doc in documents(release, task)] for task in tasks_of(group)]
        assert all(each == cases[0] for each in cases)
        assert len(set(cases[0])) == len(cases[0])


def test_training_cases_share_nothing_with_the_test(release):
    train = [list(release.single(role, train=True)) for role in SINGLE_ROLES]
    tested = {doc["image_id"] for role in SINGLE_ROLES for doc in release.single(role)}
    assert not tested & {doc["image_id"] for docs in train for doc in docs}


def test_the_groups_have_the_tasks_of_the_paper_s_tables():
    sizes = {"crosscult_single": 4, "crosscult_sequential": 9, "crosscult_retention": 12, "crosscult_diagnostic": 1}
    assert {name: len(tasks_of(name)) for name in sizes} == sizes
    assert {task for name in sizes for task in tasks_of(name)} == TASKS.keys()


def test_one_raw_case_gives_a_chinese_and_an_arabic_case(release):
    one, two = documents(release, "crosscult_single_reliability")[:2]
    assert one["image_id"] == two["image_id"] == one["insertion_image_id"]
    assert (one["partition"], two["partition"]) == ("zh", "ar")
    assert one["case_id"] == f"{one['image_id']}:zh"
    assert one["insertions"] == [{"partition": "zh", "question": one["question"], "answer": one["reference"]}]
    assert one["step"] == 1


def test_the_four_roles_of_a_case_insert_the_same_and_ask_what_the_paper_says(release):
    for docs in zip(*(documents(release, f"crosscult_single_{role}") for role in SINGLE_ROLES), strict=True):
        reliability, generality, language, scenario = docs
        assert all(doc["insertions"] == reliability["insertions"] for doc in docs)
        assert all(doc["insertion_image_id"] == reliability["image_id"] for doc in docs)
        assert generality["image_id"] != reliability["image_id"]
        assert generality["request_scenario"] == reliability["scenario"]
        assert generality["language"] == scenario["language"] == reliability["partition"]
        assert language["image_id"] == reliability["image_id"]
        assert language["language"] != language["partition"]
        assert scenario["request_scenario"] != scenario["scenario"]
        assert language["question"].startswith(f"q {language['language']} {language['scenario']}")


def test_a_chain_is_asked_about_each_step_after_all_three_insertions(release):
    for step, partition in enumerate(("en", "zh", "ar"), start=1):
        reliability = documents(release, f"crosscult_sequential_reliability_{partition}")[0]
        assert [insertion["partition"] for insertion in reliability["insertions"]] == ["en", "zh", "ar"]
        assert reliability["step"] == step
        assert reliability["insertions"][step - 1]["answer"] == reliability["reference"]
    generality = [documents(release, f"crosscult_sequential_generality_{code}")[0] for code in ("en", "zh", "ar")]
    assert len({doc["image_id"] for doc in generality}) == 1  # i_gen has no step in equation 10
    locality = [documents(release, f"crosscult_sequential_locality_{code}")[0] for code in ("en", "zh", "ar")]
    assert len({doc["image_id"] for doc in locality}) == 3  # i_loc,t has one in equation 11


def test_retention_follows_a_partition_from_its_own_step_on(release):
    for order in PAPER.orders:
        first = documents(release, f"crosscult_retention_{'_'.join(order)}_{order[0]}_after_1")[0]
        last = documents(release, f"crosscult_retention_{'_'.join(order)}_{order[0]}_after_3")[0]
        assert [insertion["partition"] for insertion in last["insertions"]] == list(order)
        assert first["insertions"] == last["insertions"][:1]
        assert all(first[field] == last[field] for field in ("question", "reference", "order"))
