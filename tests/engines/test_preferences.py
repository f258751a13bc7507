"""A LoRA adapter that a recipe trains, served by vLLM in lm-eval and merged, beside the same on transformers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from engines.toys import ENGINE, ROOT, run
from peft import AutoPeftModelForCausalLM
from support.rated_data import rows_of, write_rows
from transformers import AutoTokenizer

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
SHORT = ["--limit", "4", "--batch_size", "4", "--log_samples"]


class Circle:
    """A folder with an adapter that was trained, the merged model, and results by their names."""

    def __init__(self, folder: Path, base: Path, data: Path) -> None:
        self.folder, self.base = folder, base
        self.variables = {"CULTURE_JUDGE": "lexical", "CULTURE_TASKS_DATA": str(data)}
        self.prefs = folder / "prefs"
        self.adapter = self.prefs / "models" / "dpo.lora"
        self.merged = self.prefs / "models" / "dpo.merged"

    def evaluation(self, backend: str, arguments: str, name: str) -> list[str]:
        """The page's command, with a task of log-likelihoods beside that of answers."""
        tasks = ["--include_path", str(self.folder / "tasks"), "--tasks", "care_greedy,choice"]
        model = ["--model", backend, "--model_args", arguments, *(["--device", "cpu"] if backend == "hf" else [])]
        more = ["--apply_chat_template", "--gen_kwargs", "max_gen_toks=48", "--output_path", str(self.folder / name)]
        return ["culture-tasks", "lm-eval", "run", *model, *tasks, *more, *SHORT]

    def samples(self, name: str) -> dict[str, list]:
        """The samples of a run's tasks, which are answers or choices."""
        found: dict[str, list] = {"answers": [], "choices": []}
        files = (self.folder / name).rglob("*samples_*.jsonl")
        for file in sorted(files, key=lambda file: re.findall("care_greedy_..", file.name)):
            lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            found["answers" if "care" in file.name else "choices"] += sorted(lines, key=lambda line: line["doc_id"])
        return found


@pytest.fixture(scope="module")
def circle(text_model, fixture_data, tmp_path_factory):
    """An adapter, trained and merged as the page says, with what transformers answers with and without it."""
    made = Circle(tmp_path_factory.mktemp("circle"), text_model, fixture_data)
    (made.folder / "tasks").mkdir()
    file = write_rows(made.folder / "choice.jsonl", QUESTIONS)
    (made.folder / "tasks" / "choice.yaml").write_text(CHOICE.format(file=file), encoding="utf-8")
    ratings = write_rows(made.folder / "ratings.jsonl", rows_of(16, ratings=(2, 9)))
    commands = [
        ["culture-tasks", "preferences", "build", ratings, "-o", made.prefs, "--dev", "0", "--model", made.base],
        ["dpo", "--config", made.prefs / "dpo.lora.yaml", *TRAINING],
        made.evaluation("hf", f"pretrained={made.base},dtype=float32", "base"),
        made.evaluation("hf", f"pretrained={made.base},dtype=float32,peft={made.adapter}", "adapter"),
    ]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", ROOT / "tests" / "support" / "train_toy.py"],
        input="".join(json.dumps([str(part) for part in command]) + "\n" for command in commands),
        cwd=made.folder,
        env=os.environ | made.variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    adapted = AutoPeftModelForCausalLM.from_pretrained(made.adapter, dtype="float32")
    adapted.merge_and_unload().save_pretrained(made.merged)
    AutoTokenizer.from_pretrained(made.adapter).save_pretrained(made.merged)
    return made


def answers(samples):
    """Texts with their scores. lm-eval's vllm leaves special tokens in a text, and its hf leaves them out."""
    records = [sample["record"] for sample in samples["answers"]]
    texts = [re.sub(r"<\|\w+\|>", "", record["runs"][0]["response"]).strip() for record in records]
    return list(zip(texts, [record["score"] for record in records], strict=True))


def unlike(samples, others):
    """How many answers differ. Of two tokens that are as likely to four digits, an engine may take either."""
    return sum(one != other for one, other in zip(answers(samples), answers(others), strict=True))


def likelihoods(samples):
    return [float(reply[0]) for sample in samples["choices"] for reply in sample["filtered_resps"]]


def test_the_adapter_changes_the_model(circle):
    base, adapted = circle.samples("base"), circle.samples("adapter")
    assert len(answers(base)) == 12
    assert unlike(base, adapted) >= 6
    assert max(abs(one - other) for one, other in zip(likelihoods(base), likelihoods(adapted), strict=True)) > 0.1


def test_vllm_answers_with_the_adapter_as_transformers_does(circle):
    arguments = f"pretrained={circle.base},lora_local_path={circle.adapter},{ENGINE}"
    run(*circle.evaluation("vllm", arguments, "on vllm"), variables=circle.variables)
    expected, found = circle.samples("adapter"), circle.samples("on vllm")
    assert unlike(found, expected) <= 1
    assert likelihoods(found) == pytest.approx(likelihoods(expected), abs=1e-3)
    assert [sample["acc"] for sample in found["choices"]] == [sample["acc"] for sample in expected["choices"]]


def test_lmms_evals_vllm_answers_so_with_the_merged_model(circle):
    run(
        *("lmms-eval", "--model", "vllm", "--model_args", f"model={circle.merged},{ENGINE}"),
        *("--tasks", "care_greedy", "--gen_kwargs", "max_new_tokens=48", *SHORT),
        *("--output_path", circle.folder / "lmms-eval"),
        variables=circle.variables,
    )
    assert unlike(circle.samples("lmms-eval"), circle.samples("adapter")) <= 1
