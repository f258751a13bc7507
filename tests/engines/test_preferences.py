"""A LoRA adapter that a recipe trains, served by vLLM in lm-eval and merged, beside the same on transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from engines.toys import ENGINE, ROOT, run
from support.rated_data import rows_of, write_rows

QUESTIONS = [{"text": f"Families eat the dish on day {number}:", "good": "no", "bad": "yes"} for number in range(8)]
CHOICE = """\
task: choice
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{text}}}}"
doc_to_choice: "{{{{[good, bad]}}}}"
doc_to_target: 0
"""
TRAINING = [
    *("--use_cpu", "true", "--bf16", "false", "--dtype", "float32", "--gradient_checkpointing", "false"),
    *("--learning_rate", "2e-3", "--gradient_accumulation_steps", "1", "--max_steps", "12", "--warmup_steps", "0"),
]


def evaluation(backend, arguments, folder):
    """The page's command, with a task of log-likelihoods beside that of answers."""
    tasks = ["--include_path", str(folder / "tasks"), "--tasks", "care_greedy,choice", "--apply_chat_template"]
    short = ["--gen_kwargs", "max_gen_toks=48", "--limit", "6", "--batch_size", "4"]
    model = ["--model", backend, "--model_args", arguments, *(["--device", "cpu"] if backend == "hf" else [])]
    return ["culture-tasks", "lm-eval", "run", *model, *tasks, *short, "--log_samples"]


@pytest.fixture(scope="module")
def samples(text_model, fixture_data, tmp_path_factory):
    """The samples of each run, by task: without the adapter, with it and merged, on transformers and on vLLM."""
    folder = tmp_path_factory.mktemp("circle")
    (folder / "tasks").mkdir()
    file = write_rows(folder / "choice.jsonl", QUESTIONS)
    (folder / "tasks" / "choice.yaml").write_text(CHOICE.format(file=file), encoding="utf-8")
    ratings = write_rows(folder / "ratings.jsonl", rows_of(16, ratings=(2, 9)))
    prefs, adapter = folder / "prefs", folder / "prefs" / "models" / "dpo.lora"
    merged = adapter.with_suffix(".merged")
    models = {
        "base": ("hf", f"pretrained={text_model},dtype=float32"),
        "adapter": ("hf", f"pretrained={text_model},dtype=float32,peft={adapter}"),
        "merged": ("hf", f"pretrained={merged},dtype=float32"),
        "adapter on vLLM": ("vllm", f"pretrained={text_model},{ENGINE},lora_local_path={adapter}"),
        "merged on vLLM": ("vllm", f"pretrained={merged},{ENGINE}"),
    }
    commands = {name: [*evaluation(*model, folder), "--output_path", folder / name] for name, model in models.items()}
    first = [
        ["culture-tasks", "preferences", "build", ratings, "-o", prefs, "--dev", "0", "--model", text_model],
        ["dpo", "--config", prefs / "dpo.lora.yaml", *TRAINING],
        ["culture-tasks", "preferences", "merge", adapter, "-o", merged],
        *(command for name, command in commands.items() if models[name][0] == "hf"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_JUDGE", "lexical")
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", ROOT / "tests" / "support" / "train_toy.py"],
            input="".join(json.dumps([str(part) for part in command]) + "\n" for command in first),
            cwd=folder,
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        for name, command in commands.items():
            if models[name][0] == "vllm":
                run(*command)
    return {name: logged(folder / name) for name in models}


def logged(folder: Path):
    found = {}
    for file in sorted(folder.rglob("samples_*.jsonl")):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        found[file.name.split("_")[1]] = sorted(lines, key=lambda line: line["doc_id"])
    assert set(found) == {"care", "choice"}
    return found


def answers(samples):
    return [sample["resps"] for sample in samples["care"]]


def likelihoods(samples):
    return [float(reply[0]) for sample in samples["choice"] for reply in sample["filtered_resps"]]


@pytest.mark.parametrize("name", ["merged", "adapter on vLLM", "merged on vLLM"])
def test_answers_and_scores_are_those_of_the_adapter_on_transformers(samples, name):
    expected, found = samples["adapter"], samples[name]
    assert answers(found) == answers(expected)
    assert [sample["judge_score_lexical"]["score"] for sample in found["care"]] == [
        sample["judge_score_lexical"]["score"] for sample in expected["care"]
    ]
    assert likelihoods(found) == pytest.approx(likelihoods(expected), abs=1e-3)
    assert [sample["acc"] for sample in found["choice"]] == [sample["acc"] for sample in expected["choice"]]


def test_the_adapter_is_no_bystander(samples):
    base, adapted = samples["base"], samples["adapter"]
    assert sum(one != other for one, other in zip(answers(base), answers(adapted), strict=True)) >= 3
    assert max(abs(one - other) for one, other in zip(likelihoods(base), likelihoods(adapted), strict=True)) > 0.1
