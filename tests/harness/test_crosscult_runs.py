"""CrossCult's records, and its real runs: answers, base answers, facts, and what its judge is asked."""

import math

import pytest
from PIL import Image
from support.in_process import run_lmms_eval
from support.lmms_models import ChatEcho, SimpleEcho

from culture_tasks.benchmarks.crosscult.scoring import Insertions, score
from culture_tasks.benchmarks.crosscult.vocabulary import LOCALITY_ROLES
from culture_tasks.benchmarks.interface import responses_of
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.harness.lmms_eval.task import messages
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.records import scorer_of

SINGLE = "crosscult_single_reliability"
LOCALITY = "crosscult_single_cross_scenario_locality"
GROUPS = ["crosscult_single", "crosscult_sequential", "crosscult_retention", "crosscult_diagnostic"]


class Parrot(ChatEcho):
    """Answers an inserted question about the inserted image with the inserted answer, and echoes all others.

    One that leaks gives the last inserted answer to every other request too.
    """

    def __init__(self, *, leaks=False):
        super().__init__()
        self.leaks = leaks

    def answer(self, model_input):
        doc, base = model_input.doc, super().answer(model_input)
        answers = {insertion["question"]: insertion["answer"] for insertion in doc["insertions"]}
        with Image.open(doc["insertion_image"]["path"]) as image:
            same_image = image.convert("RGB").tobytes() == model_input.images[0].tobytes()
        answer = answers.get(doc["question"], base) if same_image else base
        if self.leaks and answer == base:
            answer = doc["insertions"][-1]["answer"]
        return [answer, base] if doc["role"] in LOCALITY_ROLES else answer


def value(results, task, metric):
    return results["results"][task][f"{metric},none"]


def samples(results, task):
    return [sample["record"] for sample in results["samples"][task]]


def test_an_ordinary_model_gives_the_base_row():
    chat, simple = ChatEcho(), SimpleEcho()
    results = run_lmms_eval(chat, GROUPS, bootstrap_iters=0)
    for task in ("crosscult_single_cross_language_locality", "crosscult_sequential_locality"):
        assert value(results, task, "rouge_l") == 100.0
        assert value(results, task, "judge_score_lexical") == 10.0
    roles = ["reliability", "generality", "cross_language_locality", "cross_scenario_locality"]
    mean = sum(value(results, f"crosscult_single_{role}", "rouge_l") for role in roles) / 4
    assert math.isclose(value(results, "crosscult_single", "rouge_l"), mean)
    assert value(results, "crosscult_single", "judge_score_coverage") == 1.0
    finals = [value(results, f"crosscult_sequential_{role}", "rouge_l") for role in (*roles[:2], "locality")]
    assert math.isclose(value(results, "crosscult_sequential", "rouge_l"), sum(finals) / 3)
    assert len(samples(results, "crosscult_single_reliability")) == 12
    assert len(samples(results, "crosscult_diagnostic")) == 54

    assert all(shown.generation["max_new_tokens"] == 64 for shown in chat.seen)
    assert all(len(shown.images) == 1 for shown in chat.seen)
    assert all([message["role"] for message in shown.messages] == ["system", "user"] for shown in chat.seen)
    assert {shown.messages[0]["content"][0]["text"] for shown in chat.seen} == {
        "Please answer briefly in one sentence.",
        "请用一句话简单回答。",
        "يرجى الإجابة بإيجاز في جملة واحدة.",
    }
    run_lmms_eval(simple, GROUPS[3:])  # the other kind of model is shown the same
    assert [shown.text for shown in simple.seen] == [one.text for one in chat.seen if GROUPS[3] in one.task]

    document = chat.task_dict["crosscult_single_reliability"]["test"][0]
    conversation = messages(task_named("crosscult_single_reliability"), document)
    conversation.insert(0, {"role": "system", "content": []})  # a backend's own, which gives way
    assert [message["role"] for message in conversation] == ["system", "user"]


def test_a_model_that_inserts_returns_both_answers_and_leaks_are_seen():
    results = run_lmms_eval(Parrot(), ["crosscult_single", "crosscult_sequential_reliability", "crosscult_retention"])
    assert value(results, "crosscult_single_reliability", "rouge_l") == 100.0
    assert value(results, "crosscult_single_cross_language_locality", "rouge_l") == 100.0
    assert value(results, "crosscult_sequential_reliability", "rouge_l") == 100.0
    assert value(results, "crosscult_retention", "judge_score_lexical") == 10.0
    logged = results["samples"]["crosscult_single_cross_language_locality"][0]
    assert logged["filtered_resps"] == [[*logged["resps"][0][0], "{}"]]
    tasks = [LOCALITY, "crosscult_sequential_locality"]
    leaking = run_lmms_eval(Parrot(leaks=True), tasks)
    assert all(value(leaking, task, "rouge_l") < 30.0 for task in tasks)
    record = samples(leaking, tasks[0])[0]
    assert record["runs"][0]["response"] != record["references"][0]


def record_of(task, doc, *runs):
    return scorer_of(task)(doc, Insertions().apply([list(runs)], docs=None))


@pytest.mark.parametrize(
    ("runs", "answers"),
    [
        (["a", "b"], [("a", "a"), ("b", "b")]),
        ([["a", "b"], ["c", "d"]], [("a", "b"), ("c", "d")]),
        ([["a", "b", '{"activated": 0}'], ["c", "d", "{}"]], [("a", "b"), ("c", "d")]),
        ([None], [("", "")]),
    ],
)
def test_every_response_becomes_an_answer_and_a_base_answer(runs, answers):
    filtered = Insertions().apply([runs], docs=None)[0]
    for passed_on in ([filtered], [text.strip() for text in filtered]):  # by lm-eval, by lmms-eval
        answered = score(load_for_evaluation(LOCALITY)[0], responses_of(passed_on))
        assert answered.responses == [text for text, _ in answers]
        assert answered.references == (answers[0][1],)
    with pytest.raises(ValueError, match="a list of 4; expected"):
        Insertions().apply([[["a", "b", "{}", "d"]]], docs=None)


@pytest.mark.parametrize(
    ("answer", "base", "rouge"),
    [
        ("whatever it says", "whatever it says", 100.0),  # an ordinary model, which has one answer
        (["a b c d", "a b x y"], "a b x y", 50.0),  # L = 2 of 4 and 4 tokens
        ("", "", 100.0),
    ],
)
def test_in_locality_an_answer_is_compared_with_that_before_the_insertion(answer, base, rouge):
    record = record_of(LOCALITY, load_for_evaluation(LOCALITY)[0], answer)
    assert record["values"] == {"rouge_l": pytest.approx(rouge)}
    if answer:
        assert record["references"] == [base]
        assert record["runs"][0]["response"] == (answer if isinstance(answer, str) else answer[0])


def test_a_record_holds_all_that_other_tables_and_a_regrading_need():
    single = load_for_evaluation(SINGLE)[0]
    record = record_of(SINGLE, single, "x")
    assert (record["item"], record["cluster"]) == (single["id"], single["scenario"])
    assert record["data"] == {name: single[name] for name in ("data", "draw")}
    groups = {name: single[name] for name in ("role", "topic", "partition", "language")}
    assert record["groups"].items() >= {**groups, "after": "1"}.items()
    facts = {name: single[name] for name in ("case_id", "setting", "scenario", "order", "step")}
    assert record["facts"].items() >= facts.items()
    assert (record["values"], record["question"]) == ({"rouge_l": 0.0}, single["question"])
    assert (record["judge_language"], record["judge"]["rubric"]) == ("Chinese", "crosscult")
