"""What a harness's model hands over: failures in place of responses, what files can't hold, and what a cache keeps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.in_process import run_lm_eval, run_lmms_eval, variant
from support.scripted_judge import ScriptedJudge, install
from support.scripted_models import ScriptedChat, ScriptedLM, run_scripted
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.harness.extending import extend
from culture_tasks.harness.handing_over import Thinking, handed_over, may_say_nothing, thinking_of
from culture_tasks.judges.rubric.verdicts import Verdict
from culture_tasks.text import NO_RESPONSE, answer_in

pytestmark = pytest.mark.filterwarnings("ignore")

HARNESSES = ("lm_eval", "lmms_eval")
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 500 - {'error': 'overloaded'}"


def first_fails(failure, answer=lambda doc: "tea"):
    """A script that fails at the first document."""
    first = []

    def script(doc):
        first[:] = first or [str(doc)]
        return failure if str(doc) == first[0] else answer(doc)

    return script


@pytest.mark.parametrize("failure", [FAILED, None, "", " \n", "[LMMS_EVAL_BUDGET_EXCEEDED]"])
@pytest.mark.parametrize("harness", HARNESSES)
def test_a_failed_response_is_neither_judged_nor_counted(harness, failure, monkeypatch, caplog):
    judge = install(monkeypatch, ScriptedJudge(lambda item: Verdict("scored", 8.0)))
    monkeypatch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0.5")
    _, results = run_scripted(harness, first_fails(failure), ["care_zh"], limit=4)
    row, samples = results["results"]["care_zh"], results["samples"]["care_zh"]
    assert len(judge.asked) == 3
    assert [row[f"care_rating{name},none"] for name in ("", "_coverage", "_unscored")] == [8.0, 0.75, 1]
    assert "(1 of 4 responses failed)" in row["alias"]
    assert samples[0]["record"]["outcomes"] == {"failed": 1}
    assert "care_zh: 1 of 4 responses failed" in caplog.text


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_failed_response_is_no_wrong_choice_and_leaves_its_question_without_a_score(harness):
    target = task_named("culturalbench_hard").target
    _, results = run_scripted(harness, first_fails(FAILED, lambda doc: target(doc)), ["culturalbench_hard"])
    records = [sample["record"] for sample in results["samples"]["culturalbench_hard"]]
    failed = [record for record in records if record["outcomes"].get("failed")]
    assert [("score" in record, record["runs"][0]["outcome"]) for record in failed] == [(False, "failed")]
    assert results["results"]["culturalbench_hard"]["acc,none"] == 1.0


@pytest.mark.parametrize("harness", HARNESSES)
def test_an_unknown_mark_that_many_responses_begin_with_is_named_once(harness, caplog):
    _, results = run_scripted(harness, lambda doc: "<ponder>A or B?</ponder>tea", ["care_zh"], limit=4)
    assert "(unknown mark '<ponder>')" in results["results"]["care_zh"]["alias"]
    assert caplog.text.count("care_zh: 4 of 4 responses begin with '<ponder>'") == 1


@pytest.mark.parametrize(
    ("module", "tokens", "expected"),
    [
        ("lm_eval.models.huggingface", None, True),
        ("lm_eval.models.vllm_causallms", None, True),
        ("lm_eval.models.openai_completions", None, False),
        ("lmms_eval.models.chat.llava_hf", 1, True),
        ("lmms_eval.models.chat.llava_hf", None, False),
        ("lmms_eval.models.simple.openai", 64, False),
        ("culture_tasks.harness.lmms_eval.knowledge_insertion", None, True),
        ("my_models", None, False),
    ],
)
def test_an_empty_response_is_an_answer_only_where_no_error_can_hide_behind_it(module, tokens, expected):
    model = type("Model", (), {"__module__": module})()
    assert may_say_nothing(model, tokens=tokens) is expected
    assert handed_over("", may_be_empty=expected) == ("" if expected else NO_RESPONSE)
    assert handed_over(None, may_be_empty=True) == NO_RESPONSE


def _template(begin, end, *, is_list=False):
    content = "message.content[0].text" if is_list else "message.content"
    return (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n"
        f"{{% if message.reasoning_content %}}{begin}{{{{ message.reasoning_content }}}}{end}{{% endif %}}"
        f"{{{{ {content} }}}}<|im_end|>\n{{% endfor %}}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


@pytest.mark.parametrize(
    ("template", "marks"),
    [
        (_template("<ponder>\n", "\n</ponder>\n\n"), Thinking("<ponder>", "</ponder>")),
        (_template("<|plan>mull\n", "<plan|>", is_list=True), Thinking("<|plan>mull", "<plan|>")),
        (_template("", "<|done|>"), Thinking("", "<|done|>")),
        (_template("<think>\n", "\n</think>\n\n"), None),
        (_template("", "\n\n"), None),
        ("{{ messages[0].content }}", None),
        ("{{ raise_exception('no') }}", None),
    ],
)
def test_the_marks_of_thinking_are_read_from_the_chat_template(template, marks):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"a": 0}, "a")), chat_template=template)
    thinking = thinking_of(SimpleNamespace(tokenizer=tokenizer))
    assert thinking == marks
    assert thinking_of(SimpleNamespace(processor=SimpleNamespace(tokenizer=tokenizer))) == marks
    if thinking is not None:
        response = f"{thinking.begin} A? {thinking.end}\nB"
        assert answer_in(handed_over(response, may_be_empty=True, thinking=thinking)) == "B"
    assert thinking_of(SimpleNamespace()) is None


@pytest.mark.parametrize(
    ("prompt", "response", "answer"),
    [
        ("Which?<|im_start|>assistant\n<think>\n", "Let me see, B", ""),
        ("Which?<|im_start|>assistant\n<think>\n", "A?\n</think>\n\nB", "B"),
        ("Which?<|im_start|>assistant\n<think>\n\n</think>\n\n", "B", "B"),
        ("Which? <think> or B?", "B", "B"),
        ("Which?<|channel|>analysis<|message|>", "Let me see, B", ""),
        ("Which?\n<think>", FAILED, FAILED),
    ],
)
def test_a_response_to_a_prompt_that_opens_thinking_begins_with_it(prompt, response, answer):
    assert answer_in(handed_over(response, may_be_empty=True, prompt=prompt)) == answer


@pytest.mark.parametrize(("end", "score"), [(None, 0.0), ("</think>", 1.0)])
def test_an_answer_whose_thinking_lm_eval_has_cut_is_no_open_block(end, score, tmp_path):
    model = ScriptedLM(task_named("culturalbench_easy").target)
    model.think_end_token = end
    tasks = variant(tmp_path, "lm_eval", "culturalbench_easy", doc_to_text="Which?<think>\n")
    assert run_lm_eval(model, tasks, include=tmp_path)["results"]["variant"]["acc,none"] == score


def test_a_response_cache_of_lm_eval_keeps_no_failures(tmp_path):
    cache = str(tmp_path / "cache")
    model = ScriptedLM(first_fails(FAILED))
    run_lm_eval(model, ["culturalbench_hard"], limit=4, use_cache=cache)
    again = ScriptedLM(lambda doc: "False")
    run_lm_eval(again, ["culturalbench_hard"], limit=4, use_cache=cache)
    assert len(again.seen) == 1


def test_a_response_cache_of_lmms_eval_keeps_no_failures(tmp_path):
    model = ScriptedChat(first_fails(FAILED))
    for seen in (4, 5, 6):
        run_lmms_eval(model, ["culturalbench_hard"], limit=4, use_cache=str(tmp_path))
        assert len(model.seen) == seen


def test_a_function_of_a_harness_has_each_extension_once():
    owner = SimpleNamespace(__name__="harness", say=lambda: "said")

    def loudly(original):
        return lambda: original().upper()

    def twice(original):
        return lambda: original() * 2

    for extension in (loudly, twice, loudly, twice):
        extend(owner, "say", extension)
    assert owner.say() == "SAIDSAID"
