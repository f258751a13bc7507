"""Recipes: read by the parsers of TRL and accelerate, with the paper's values, and with paths that name the folder."""

import importlib.resources
import json
import math
import re
import subprocess
import sys
from pathlib import Path, PurePath

import pytest
import yaml

from culture_tasks.preferences.recipes.recipe_files import PAPER_MODELS, recipe_files

SUPPORT = Path(__file__).parents[1] / "support"
ROWS = {"sft": 1300, "dpo": 1513, "kto": 3026}
METHODS = ("sft", "dpo", "kto", "simpo")

# CARE, section 4.1 and Appendix B: the rates that were tried.
PAPER_RATES = {"sft": {1e-5, 2e-5}} | dict.fromkeys(("dpo", "kto", "simpo"), frozenset({3e-7, 5e-7, 7e-7}))


def written(folder, rows=ROWS, dev_rows=ROWS, *, languages=("zh",), model=PAPER_MODELS[0]):
    return recipe_files(PurePath(folder), rows, dev_rows, languages, model)


@pytest.fixture(scope="module")
def parsed(tmp_path_factory):
    """What TRL reads in each recipe."""
    folder = tmp_path_factory.mktemp("prefs")
    for name, text in written("some/prefs").items():
        (folder / name).write_text(text, encoding="utf-8")
    recipes = sorted(folder.glob("*.yaml"))
    command = [sys.executable, "-W", "ignore", str(SUPPORT / "parsed_recipes.py"), *map(str, recipes)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {Path(path).name.removesuffix(".yaml"): options for path, options in json.loads(done.stdout).items()}


@pytest.mark.parametrize("kind", ["paper", "lora"])
@pytest.mark.parametrize("method", METHODS)
def test_a_recipe_is_known_to_trl_and_says_what_the_paper_says(parsed, method, kind):
    name = f"{method}.{kind}"
    options, ranks = parsed[name], {"paper": 8, "lora": 1}[kind]
    if method == "simpo":  # its script reads no option of `accelerate launch`
        assert options["rest"] == []
        assert (options["loss_type"], options["cpo_alpha"]) == ("simpo", 0.0)
    else:
        assert options["rest"] == ["--num_processes", str(ranks)]
        assert options["launch"] == {"num_processes": ranks}
    assert options["per_device_train_batch_size"] * options["gradient_accumulation_steps"] * ranks == 128
    assert (options["num_train_epochs"], options["warmup_steps"], options["max_length"]) == (3, 5, 2048)
    assert options["lr_scheduler_type"] == "linear"
    assert options.get("beta", 0.1) == 0.1
    if kind == "paper":
        assert options["learning_rate"] in PAPER_RATES[method]
        assert (options["use_peft"], options["dtype"]) == (False, "float32")
    else:
        assert options["learning_rate"] / 10 == pytest.approx(parsed[f"{method}.paper"]["learning_rate"])
        assert (options["use_peft"], options["lora_target_modules"]) == (True, "all-linear")
    if name in ("dpo.paper", "kto.paper"):  # no second model in memory
        assert options["precompute_ref_log_probs"] is True
    if method == "kto":  # the reference point is estimated from several rows, in the file's order
        assert options["per_device_train_batch_size"] >= 4
        assert options["train_sampling_strategy"] == "sequential"
    data = "dpo" if method == "simpo" else method
    assert options["dataset_name"] == f"./some/prefs/{data}"
    assert options["output_dir"] == f"./some/prefs/models/{name}"
    assert (options["eval_strategy"], options["dataset_test_split"]) == ("epoch", "validation")
    without = written("prefs", dev_rows=ROWS | {data: 0})[f"{name}.yaml"]
    assert yaml.safe_load(without)["eval_strategy"] == "no"
    recipe = written("prefs")[f"{name}.yaml"]
    assert "ours: the paper names no development set" in recipe
    assert method == "sft" or "is no evidence of better answers" in recipe


@pytest.mark.parametrize(
    ("folder", "data"),
    [
        ("prefs", "./prefs/dpo"),  # "prefs/dpo" would be a data set on the Hub
        (".", "./dpo"),
        ("../prefs", "../prefs/dpo"),
        ("/srv/prefs", "/srv/prefs/dpo"),
        ("a\nseed: 7\n数据 #1", "./a\nseed: 7\n数据 #1/dpo"),
    ],
)
def test_a_path_is_the_users_and_never_the_name_of_a_data_set(folder, data):
    recipe = yaml.safe_load(written(folder)["dpo.lora.yaml"])
    assert recipe["dataset_name"] == data
    assert recipe["output_dir"] == data.removesuffix("dpo") + "models/dpo.lora"
    assert "seed" not in recipe


def test_the_command_is_quoted_another_model_can_be_trained_and_no_recipe_is_without_its_data():
    recipe = written("my data", model="google/gemma-2-9b-it")["dpo.lora.yaml"]
    assert "#     trl dpo --config './my data/dpo.lora.yaml'\n" in recipe
    assert yaml.safe_load(recipe)["model_name_or_path"] == "google/gemma-2-9b-it"
    files = written("prefs", {"sft": 0, "dpo": 3, "kto": 6})
    assert {name.split(".")[0] for name in files} == {"dpo", "kto", "simpo"}
    assert set(written("prefs", {"sft": 2})) == {"sft.paper.yaml", "sft.lora.yaml"}


def test_the_steps_on_the_page_are_those_of_the_recipes():
    page = " ".join((SUPPORT.parents[1] / "docs" / "preferences.md").read_text(encoding="utf-8").split())
    questions = (1513, 644, 757)  # CARE's training questions in Chinese, Arabic and Japanese
    sentences = {1.0: "{} steps for Chinese, {} for Arabic and {} for Japanese", 0.9: "make {}, {} and {}"}
    for share, sentence in sentences.items():
        recipes = [written("prefs", rows={"dpo": math.ceil(share * rows)})["dpo.paper.yaml"] for rows in questions]
        steps = [re.search(r"rows: (\d+) steps", recipe)[1] for recipe in recipes]
        assert sentence.format(*steps) in page
    # As the trainer counts: 1,513 pairs in batches of 128 are 12 steps; three epochs are 36
    assert "num_train_epochs: 3  # 1,513 rows: 36 steps\n" in written("prefs")["dpo.paper.yaml"]
    one = written("prefs", {"dpo": 1})["dpo.lora.yaml"]
    assert "# 1 row: 3 steps; too few to get past 5 steps of warm-up\n" in one
    assert "too few" not in written("prefs", {"dpo": 129})["dpo.lora.yaml"]


def test_a_recipe_says_how_to_evaluate_and_on_what_to_train():
    messages = written("prefs")["dpo.lora.yaml"]
    assert "with --apply_chat_template" in messages
    both = written("prefs", languages=("zh", "ar"))["dpo.paper.yaml"]
    assert "one model for each language; these data have ar, zh." in both
    assert "for each language" not in messages
    named = set(re.findall(r"\b(?:fsdp|zero)\d\b|\b(?:multi|single)_gpu\b", both))
    assert named == {"fsdp2", "zero3", "multi_gpu", "single_gpu"}
    configurations = importlib.resources.files("trl.accelerate_configs").iterdir()
    assert named <= {file.name.removesuffix(".yaml") for file in configurations}
