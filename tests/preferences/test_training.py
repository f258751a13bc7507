"""The whole circle with a toy: ratings, pairs, training by the recipes, answers, and a comparison that notices.

The toy has learnt a wrong answer to each question a little better than the right one, and says the wrong one. Only
generated answers tell whether training turned it: the control, with chosen and rejected swapped, has as large a margin.
"""

import json
import re
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
    return done.stdout


class World:
    """The working directory, with test questions, a toy, and models trained from it.

    ``right`` and ``wrong`` are answers by question, ``margins`` the last ones that training by DPO logged.
    """

    def __init__(self, folder, fixture_data):
        self.folder, self.right, self.wrong = folder, {}, {}
        (folder / "data" / "care").mkdir(parents=True)
        (folder / "learnt").mkdir()
        for culture, wrong in WRONG.items():
            rows = json.loads((fixture_data / "care" / f"{culture}-test.json").read_text(encoding="utf-8"))
            rows = sorted(rows, key=lambda row: len(row["answer"].encode()))[:4]
            self.right |= {row["question"]: row["answer"] for row in rows}
            self.wrong |= {row["question"]: wrong for row in rows}
            (folder / "data" / "care" / f"{culture}-test.json").write_text(json.dumps(rows), encoding="utf-8")
        tiny_models.make_tiny_lm(folder / "untrained")
        messages = [
            {
                "prompt": [{"role": "user", "content": question}],
                "completion": [{"role": "assistant", "content": some[question]}],
            }
            for question in self.right
            for some in (self.wrong, self.wrong, self.right)
        ]
        write_rows(folder / "learnt" / "train.jsonl", messages)
        for name, best, worst in (("ratings", 9, 2), ("swapped", 2, 9)):
            rows = [
                {"question": question, "reference": right, "response": some[question], "human_rating": rating}
                for question, right in self.right.items()
                for some, rating in ((self.right, best), (self.wrong, worst))
            ]
            write_rows(folder / f"{name}.jsonl", rows)
        build("ratings.jsonl", "prefs")
        build("swapped.jsonl", "control")
        learning = ["--num_train_epochs", "35", "--learning_rate", "5e-3", "--per_device_train_batch_size", "12"]
        learning += ["--gradient_accumulation_steps", "1", "--use_peft", "false"]
        learning += ["--model_name_or_path", "untrained", "--dataset_name", "./learnt", "--output_dir", "toy"]
        said = train(
            ["sft", "--config", "prefs/sft.lora.yaml", *ON_A_CPU, *learning],
            ["kto", "--config", "prefs/kto.lora.yaml", *ON_A_CPU, *SHORT, "22"],
            ["prefs/simpo.py", "--config", "prefs/simpo.lora.yaml", *ON_A_CPU, *SHORT, "24"],
            ["dpo", "--config", "prefs/dpo.lora.yaml", *ON_A_CPU, *SHORT, "18"],
            ["dpo", "--config", "control/dpo.lora.yaml", *ON_A_CPU, *SHORT, "18"],
        )
        self.margins = [
            float(re.findall(r"'rewards/margins': '([^']+)'", part)[-1]) for part in said.split("\n$ ")[-2:]
        ]
        evaluate("toy", "pretrained=toy", "toy")
        for name, adapter in ADAPTERS.items():
            evaluate(name, f"pretrained=toy,peft={adapter}", adapter)
        assert main(["report", "runs", "-o", "report", "--formats", "json"]) == 0

    def count(self, model, expected):
        """How many answers of a model in its run of `care_greedy` are those expected."""
        files = (self.folder / "runs" / model).rglob("samples_*.jsonl")
        samples = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return sum(expected[sample["doc"]["question"]] == sample["resps"][0][0].strip() for sample in samples)


@pytest.fixture(scope="module")
def world(tmp_path_factory, fixture_data):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("circle")
        patch.chdir(folder)
        patch.setenv("CULTURE_JUDGE", "lexical")
        patch.setenv("CULTURE_TASKS_DATA", str(folder / "data"))
        return World(folder, fixture_data)


def test_training_turns_the_toy_and_with_chosen_and_rejected_swapped_it_is_not_turned(world):
    """SimPO is slower than DPO: the paper's beta is small for means of log probabilities."""
    assert (world.count("toy", world.wrong), world.count("toy", world.right)) == (12, 0)
    right = {model: world.count(model, world.right) for model in ADAPTERS}
    assert min(right["dpo"], right["kto"]) >= 10
    assert right["simpo"] >= 3
    assert right["control"] == 0


def test_compare_says_that_the_score_rose_and_a_margin_is_no_evidence(world, tmp_path, monkeypatch):
    """The control's margin is as large as that of the model that was turned, and its score isn't."""

    def compared(model, *options):
        assert main(["compare", "runs/toy", f"runs/{model}", "--json", str(tmp_path / "compared.json"), *options]) == 0
        checks = json.loads((tmp_path / "compared.json").read_text(encoding="utf-8"))["checks"]
        return next(check for check in checks if check["name"] == "care_greedy")

    monkeypatch.chdir(world.folder)  # where the results name the models
    for method in ("dpo", "kto"):
        found = compared(method, "--compare-anyway")
        assert found["verdict"] == "B is better"
        assert found["b"]["score"] > found["a"]["score"] + 5
        assert found["low"] > 0
        assert found["p"] < 0.01
        assert found["common_items"] == 12
    margin, of_control = world.margins
    assert of_control > 0.8 * margin > 0
    assert compared("control", "--compare-anyway")["verdict"] == "not distinguishable"
    # Models that were trained on the test are marked: the recipes save them below the manifest, which names the items.
    assert "trained on" in compared("dpo")["message"]
    runs = json.loads((world.folder / "report" / "report.json").read_text(encoding="utf-8"))["runs"].values()
    assert {run["model"]: run["trained_on"] for run in runs} == {"toy": 0} | dict.fromkeys(ADAPTERS.values(), 4)
