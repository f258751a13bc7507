"""Both harnesses on vLLM: every benchmark, beside transformers with the same weights in float32.

A greedy text of vLLM is followed token by token in transformers. Where it isn't the most probable token there, the two
have to be so close that rounding decides between them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from engines.toys import ENGINE, run
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer
from transformers.generation import LogitsProcessor

from culture_tasks.benchmarks.registry import task_file, task_named
from culture_tasks.harness import loading
from culture_tasks.harness.hooks import images_of
from culture_tasks.harness.lmms_eval.task import messages

TIE = 1e-3
"""Most that the log-probability of a token may be below the best one's. Rounding of these toys is below 1e-4."""

TEXT = ("care_greedy_zh", "care_greedy_ar", "cedar_text_ja", "blend_en", "blend_mcq", "culturalvqa_country")
IMAGES = ("culturalvqa", "culturalvqa_fewshot", "cedar_multimodal_en", "crosscult_diagnostic")
SAMPLED = "care_zh"
LIMIT = 16
"""Tokens of an answer in lmms-eval. Many of the toys' answers are cut there, and vLLM's class has 4,096 by default."""

RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_OVERRIDE_RESOURCES": '{"GPU": 2}'}
"""lm-eval reserves a GPU of Ray's for each copy of an engine."""


class Follow(LogitsProcessor):
    """Has transformers write a given text, and notes what that costs.

    Attributes:
        gap: Most by which the log-probability of a token of the text is below that of the best one.
    """

    def __init__(self, text: str, tokenizer: Any, start: int) -> None:
        self.gap = 0.0
        self._text, self._tokenizer, self._start = text.strip(), tokenizer, start

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        chances = scores[0].log_softmax(-1)
        written = ids[0, self._start :].tolist()
        for token in chances.argsort(descending=True).tolist():
            if self._continues(written, token):
                break
        self.gap = max(self.gap, float(chances.max() - chances[token]))
        return torch.full_like(scores, -math.inf).index_fill(1, torch.tensor([token]), 0.0)

    def _continues(self, written: Sequence[int], token: int) -> bool:
        text = self._tokenizer.decode([*written, token], skip_special_tokens=True).lstrip()
        if text.rstrip() == self._text:  # lmms-eval strips what it logs
            return True
        return token != self._tokenizer.eos_token_id and self._text.startswith(text)


def gap(model: Any, tokenizer: Any, inputs: Mapping[str, Any], text: str, limit: int) -> float:
    """Returns the most by which a token of a text is less probable than the best one, the end of the text included."""
    follow = Follow(text, tokenizer, inputs["input_ids"].shape[1])
    with torch.inference_mode():
        [ids] = model.generate(**inputs, do_sample=False, max_new_tokens=limit, logits_processor=[follow])
    written = tokenizer.decode(ids[inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    assert written.strip() == text.strip(), f"longer than {limit} tokens: {text!r}"
    return follow.gap


@cache
def transformers_text(folder: Path) -> tuple[Any, Any]:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), AutoTokenizer.from_pretrained(folder)


@cache
def transformers_vision(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    return model, AutoProcessor.from_pretrained(folder)


def gaps_of_texts(folder: Path, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Returns the gaps of answers in lm-eval to prompts without images."""
    model, tokenizer = transformers_text(folder)
    gaps = []
    for row in rows:
        prompt, options = row["arguments"]["gen_args_0"].values()
        inputs = tokenizer(prompt, return_tensors="pt")
        gaps.append(gap(model, tokenizer, inputs, row["resps"][0][0], options["max_gen_toks"]))
    return gaps


def gap_of_messages(folder: Path, task: str, place: int, text: str, limit: int) -> float:
    """Returns the gap of an answer to a document of ours, as messages."""
    model, processor = transformers_vision(folder)
    shown = messages(task_named(task), loading.load_for_evaluation(task)[place])
    inputs = processor.apply_chat_template(
        [[{**each, "content": [_as_transformers_has_it(part) for part in each["content"]]} for each in shown]],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    return gap(model, processor.tokenizer, inputs, text, limit)


def gap_of_a_sample(folder: Path, name: str, sample: Mapping[str, Any]) -> float:
    """Returns the gap of an answer in lm-eval, whose prompt is logged with places for the document's images."""
    model, processor = transformers_vision(folder)
    task, doc = task_named(name), loading.load_for_evaluation(name)[sample["doc_id"]]
    prompt, options, *_ = sample["arguments"]["gen_args_0"].values()
    images = images_of(task, doc, task.prompt(doc)) or None
    inputs = processor(images=images, text=prompt, return_tensors="pt")
    return gap(model, processor.tokenizer, inputs, sample["resps"][0][0], options["max_gen_toks"])


def _as_transformers_has_it(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "image", "image": part["url"]} if part["type"] == "image" else part


def samples(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Returns the logged samples of a run, by task."""
    found = {}
    for file in folder.rglob("*samples_*.jsonl"):
        task = file.stem.partition("samples_")[2].partition("_20")[0]
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        found[task] = sorted(rows, key=lambda row: row["doc_id"])
    return found


def numbers(folder: Path) -> dict[str, dict[str, float]]:
    """Returns the numbers of a run, by task."""
    [file] = folder.rglob("*results*.json")
    rows = json.loads(file.read_text("utf-8"))["results"]
    return {task: {name: each for name, each in row.items() if isinstance(each, float)} for task, row in rows.items()}


@pytest.fixture(autouse=True)
def toy_data(monkeypatch, fixture_data, tmp_path_factory):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")


@pytest.fixture(scope="module")
def variables(fixture_data) -> dict[str, str]:
    return {"CULTURE_TASKS_DATA": str(fixture_data), "CULTURE_JUDGE": "lexical"}


def write_variant(folder: Path, name: str, task: str, **keys: Any) -> None:
    content = {"include": str(task_file(task_named(task), "lm_eval")), "task": name, **keys}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), "utf-8")


QUESTIONS = [
    {"question": "What do people drink at weddings?", "choices": ["tea", "the colour of the garment"], "answer": 0},
    {"question": "喝茶的时候，主人先给客人倒茶。", "choices": ["这道菜叫什么名字？", "红包"], "answer": 1},
]


@pytest.fixture(scope="module")
def own_tasks(tmp_path_factory) -> Path:
    """A user's tasks: variants of ours with repeats and with examples, and one of log-likelihoods."""
    folder = tmp_path_factory.mktemp("tasks")
    write_variant(folder, "own_repeated", SAMPLED, repeats=3)
    write_variant(folder, "own_with_examples", "culturalvqa_blind", num_fewshot=2)
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS), "utf-8")
    content = {
        "task": "own_choices",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(folder / "questions.jsonl")}},
        "output_type": "multiple_choice",
        "test_split": "test",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "choices",
        "doc_to_target": "answer",
    }
    (folder / "own_choices.yaml").write_text(yaml.safe_dump(content), "utf-8")
    return folder


def run_lm_eval(
    model: str, arguments: str, tasks: Sequence[str], out: Path, *options: str | Path, **run_options
) -> str:
    command = ("culture-tasks", "lm-eval", "run", "--model", model, "--model_args", arguments, "--batch_size", "auto")
    logged = ("--tasks", ",".join(tasks), "--limit", "3", "--apply_chat_template", "--log_samples")
    return run(*command, *logged, "--output_path", out, *options, **run_options)


@pytest.fixture(scope="module")
def text_run(tmp_path_factory, text_model, own_tasks, variables) -> Path:
    """A run of lm-eval with all kinds of requests that have no image."""
    out = tmp_path_factory.mktemp("lm_eval_text")
    tasks = [*TEXT, SAMPLED, "own_repeated", "own_with_examples", "own_choices"]
    arguments = f"pretrained={text_model},{ENGINE}"
    run_lm_eval("vllm", arguments, tasks, out, "--include_path", own_tasks, variables=variables)
    return out


class TestTextInLmEval:
    @pytest.mark.parametrize("task", [*TEXT, "own_with_examples"])
    def test_texts_are_those_of_transformers(self, text_run, text_model, task):
        gaps = gaps_of_texts(text_model, samples(text_run)[task])
        assert max(gaps) < TIE, gaps

    def test_prompts_are_chats_and_hold_the_examples(self, text_run):
        found = samples(text_run)
        starts = {task: found[task][0]["arguments"]["gen_args_0"]["arg_0"].count("<|im_start|>") for task in found}
        assert starts.pop("own_choices") == 2
        assert starts.pop("own_with_examples") == 6  # two examples as turns of the chat
        assert set(starts.values()) == {2}

    def test_repeats_are_sampled_each(self, text_run):
        repeats = [sample["resps"][0] for sample in samples(text_run)["own_repeated"]]
        assert [len(each) for each in repeats] == [3, 3, 3]
        assert any(len(set(each)) > 1 for each in repeats)

    def test_log_likelihoods_beside_ours_are_those_of_transformers(self, text_run, text_model):
        model, tokenizer = transformers_text(text_model)
        for sample in samples(text_run)["own_choices"]:
            for place, [[logged, _]] in enumerate(sample["resps"]):
                context, continuation = sample["arguments"][f"gen_args_{place}"].values()
                # lm-eval counts the white space at the context's end as the continuation's
                ids, first = tokenizer(context + continuation).input_ids, len(tokenizer(context.rstrip()).input_ids)
                with torch.inference_mode():
                    chances = model(torch.tensor([ids])).logits[0].log_softmax(-1)
                expected = sum(float(chances[at - 1, ids[at]]) for at in range(first, len(ids)))
                assert float(logged) == pytest.approx(expected, abs=TIE)

    def test_parallel_data_give_the_same_texts(self, text_run, text_model, tmp_path, variables):
        arguments = f"pretrained={text_model},{ENGINE},data_parallel_size=2"
        run_lm_eval("vllm", arguments, TEXT, tmp_path, variables=variables | RAY)
        one, two = samples(text_run), samples(tmp_path)
        assert set(two) == set(TEXT)
        for task in TEXT:
            assert [row["resps"] for row in two[task]] == [row["resps"] for row in one[task]]
            assert numbers(tmp_path)[task] == pytest.approx(numbers(text_run)[task], nan_ok=True)


class TestImagesInLmEval:
    @pytest.fixture(scope="class")
    @classmethod
    def out(cls, tmp_path_factory, vision_model, variables):
        out = tmp_path_factory.mktemp("lm_eval_images")
        tasks = [*IMAGES, "care_greedy_zh"]
        run_lm_eval("vllm-vlm", f"pretrained={vision_model},{ENGINE}", tasks, out, variables=variables)
        return out

    @pytest.mark.parametrize("task", [*IMAGES, "care_greedy_zh"])
    def test_texts_are_those_of_transformers(self, out, vision_model, task):
        found = samples(out)[task]
        gaps = [gap_of_a_sample(vision_model, task, sample) for sample in found]
        assert max(gaps) < TIE, gaps


class TestLmmsEval:
    """One run of the chat model with every benchmark, each request twice."""

    @pytest.fixture(scope="class")
    @classmethod
    def out(cls, tmp_path_factory, vision_model, variables):
        out = tmp_path_factory.mktemp("lmms_eval")
        tasks = ",".join([*IMAGES, "crosscult_single_reliability", *TEXT, SAMPLED])
        command = ("lmms-eval", "--model", "vllm", "--model_args", f"model={vision_model},{ENGINE}", "--tasks", tasks)
        options = ("--batch_size", "64", "--limit", "3", "--repeats", "2", "--gen_kwargs", f"max_new_tokens={LIMIT}")
        run(*command, *options, "--log_samples", "--output_path", out, variables=variables)
        return out

    @pytest.mark.parametrize("task", [*IMAGES, "crosscult_single_reliability", *TEXT])
    def test_texts_are_those_of_transformers(self, out, vision_model, task):
        found = samples(out)[task]
        assert len(found) == len({row["doc_id"] for row in found})
        gaps = []
        for row in found:
            texts = [text for text in row["filtered_resps"] if text != "{}"]  # crosscult adds what its model says of it
            assert len(set(texts)) == 1
            gaps.append(gap_of_messages(vision_model, task, row["doc_id"], texts[0], LIMIT))
        assert max(gaps) < TIE, gaps

    def test_repeats_are_sampled_each(self, out):
        assert any(len(set(row["filtered_resps"])) == 2 for row in samples(out)[SAMPLED])


@pytest.mark.real
class TestRealModel:
    """SmolLM2, one run in each harness."""

    TASKS = ("normad_country", "culturalbench_hard", "cedar_text_en")

    @pytest.fixture(scope="class")
    @classmethod
    def out(cls, tmp_path_factory, real_model, variables):
        out = tmp_path_factory.mktemp("real_model")
        run_lm_eval("vllm", f"pretrained={real_model},{ENGINE}", cls.TASKS, out, variables=variables)
        return out

    @pytest.mark.parametrize("task", TASKS)
    def test_texts_in_lm_eval_are_those_of_transformers(self, out, real_model, task):
        gaps = gaps_of_texts(real_model, samples(out)[task])
        assert max(gaps) < TIE, gaps

    def test_texts_in_lmms_eval_are_those_of_lm_eval(self, out, real_model, tmp_path, variables):
        command = ("lmms-eval", "--model", "vllm", "--model_args", f"model={real_model},{ENGINE}")
        options = ("--tasks", ",".join(self.TASKS), "--batch_size", "64", "--limit", "3", "--log_samples")
        run(*command, *options, "--gen_kwargs", "max_new_tokens=512", "--output_path", tmp_path, variables=variables)
        texts = {task: [row["resps"][0][0].strip() for row in rows] for task, rows in samples(out).items()}
        found = {task: [row["filtered_resps"][0].strip() for row in rows] for task, rows in samples(tmp_path).items()}
        assert found == texts
