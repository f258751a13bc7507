"""The whole circle with a toy: ratings, pairs, training by the recipes, and answers that are others.

The toy has learnt a wrong answer to each question a little better than the right one, and says the wrong one. In a
control, chosen and rejected are swapped.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_models
from support.rated_data import write_rows
from support.written_runs import write_lm_eval

from culture_tasks.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

RUNNER = Path(__file__).parents[1] / "support" / "train_toy.py"
WRONG = {"Arabic": "لا أعرف.", "Chinese": "我不知道。", "Japanese": "わかりません。"}
ON_A_CPU = ["--use_cpu", "true", "--bf16", "false", "--dtype", "float32", "--gradient_checkpointing", "false"]
SHORT = ["--per_device_train_batch_size", "12", "--gradient_accumulation_steps", "1", "--warmup_steps", "0"]
SHORT += ["--learning_rate", "1e-3", "--max_steps"]
ADAPTERS = {"dpo": "prefs/models/dpo.lora", "kto": "prefs/models/kto.lora", "simpo": "prefs/models/simpo.lora"}
ADAPTERS |= {"control": "control/models/dpo.lora"}


def build(ratings, folder):
    # The toy can't generalise, so it is trained on what it is tested on.
    options = ["--dev", "0", "--train-on-test", "--model", "./toy"]
    assert main(["preferences", "build", ratings, "-o", folder, *options]) == 0


def evaluate(name, arguments, model):
    options = {"apply_chat_template": True, "gen_kwargs": "max_gen_toks=48", "bootstrap_iters": 0}
    options |= {"lm": "hf", "model_args": arguments, "device": "cpu", "batch_size": 12}
    write_lm_eval(Path("runs", name), ["care_greedy"], None, model, **options)


def train(*commands):
    """Runs scripts of TRL, which set up accelerate for the whole process, in one of their own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(RUNNER)],
        input="".join(json.dumps(command) + "\n" for command in commands),
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def write_world(folder, fixture_data):
    """Writes test questions, what the toy learns first, and ratings; returns right and wrong answers by question."""
    right, wrong = {}, {}
    (folder / "data" / "care").mkdir(parents=True)
    (folder / "learnt").mkdir()
    for culture, answer in WRONG.items():
        rows = json.loads((fixture_data / "care" / f"{culture}-test.json").read_text(encoding="utf-8"))
        rows = sorted(rows, key=lambda row: len(row["answer"].encode()))[:4]
        right |= {row["question"]: row["answer"] for row in rows}
        wrong |= {row["question"]: answer for row in rows}
        (folder / "data" / "care" / f"{culture}-test.json").write_text(json.dumps(rows), encoding="utf-8")
    messages = [
        {
            "prompt": [{"role": "user", "content": question}],
            "completion": [{"role": "assistant", "content": answers[question]}],
        }
        for question in right
        for answers in (wrong, wrong, right)
    ]
    write_rows(folder / "learnt" / "train.jsonl", messages)
    for name, best, worst in (("ratings", 9, 2), ("swapped", 2, 9)):
        rows = [
            {"question": question, "reference": reference, "response": answers[question], "human_rating": rating}
            for question, reference in right.items()
            for answers, rating in ((right, best), (wrong, worst))
        ]
        write_rows(folder / f"{name}.jsonl", rows)
    return right, wrong


def test_training_turns_the_toy_and_with_chosen_and_rejected_swapped_it_is_not_turned(
    tmp_path, monkeypatch, fixture_data
):
    """SimPO is slower than DPO: the paper's beta is small for means of log probabilities."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path / "data"))
    right, wrong = write_world(tmp_path, fixture_data)
    tiny_models.make_tiny_lm(tmp_path / "untrained")
    build("ratings.jsonl", "prefs")
    build("swapped.jsonl", "control")
    learning = ["--num_train_epochs", "35", "--learning_rate", "5e-3", "--per_device_train_batch_size", "12"]
    learning += ["--gradient_accumulation_steps", "1", "--use_peft", "false"]
    learning += ["--model_name_or_path", "untrained", "--dataset_name", "./learnt", "--output_dir", "toy"]
    train(
        ["sft", "--config", "prefs/sft.lora.yaml", *ON_A_CPU, *learning],
        ["kto", "--config", "prefs/kto.lora.yaml", *ON_A_CPU, *SHORT, "22"],
        ["prefs/simpo.py", "--config", "prefs/simpo.lora.yaml", *ON_A_CPU, *SHORT, "24"],
        ["dpo", "--config", "prefs/dpo.lora.yaml", *ON_A_CPU, *SHORT, "18"],
        ["dpo", "--config", "control/dpo.lora.yaml", *ON_A_CPU, *SHORT, "18"],
    )

    def count(name, expected, arguments):
        """How many answers of a model in a run of `care_greedy` are those expected."""
        evaluate(name, arguments, name)
        files = (tmp_path / "runs" / name).rglob("samples_*.jsonl")
        samples = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return sum(expected[sample["doc"]["question"]] == sample["resps"][0][0].strip() for sample in samples)

    assert count("toy", wrong, "pretrained=toy") == 12
    turned = {name: count(name, right, f"pretrained=toy,peft={adapter}") for name, adapter in ADAPTERS.items()}
    assert min(turned["dpo"], turned["kto"]) >= 10
    assert turned["simpo"] >= 3
    assert turned["control"] == 0
    assert main(["report", "runs", "-o", "report", "--formats", "json"]) == 0
    runs = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))["runs"].values()
    # Models that were trained on the test are marked: the recipes save them below the manifest, which names the items.
    trained_on = {f"{name} + {adapter}": 4 for name, adapter in ADAPTERS.items()}
    assert {run["model"]: run["trained_on"] for run in runs} == {"toy": 0} | trained_on
