"""One run of each harness over tasks of all benchmarks: a model answers every second question of a task rightly."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace

import pytest
from support.in_process import run_lm_eval, run_lmms_eval
from support.lmms_models import ChatEcho
from support.scripted_lm import ScriptedLM

from culture_tasks.benchmarks.registry import task_named

pytestmark = pytest.mark.filterwarnings("ignore")

TASKS = [
    *("care", "culturalvqa", "culturalvqa_blind", "cedar", "cvqa_en", "blend_en", "blend_mcq", "normad_rule"),
    *("culturalbench_easy", "culturalbench_hard", "worldcuisines_dish", "worldcuisines_open_dish"),
    "crosscult_diagnostic",
]


class Half:
    """Answers every second question of a task by its first reference, and the others by nothing that is right."""

    def __init__(self):
        self.asked = Counter()

    def __call__(self, task, doc):
        self.asked[task] += 1
        return task_named(task).score(doc, [""]).references[0] if self.asked[task] % 2 else "zzz"


class Chat(ChatEcho):
    def __init__(self):
        super().__init__()
        self.half = Half()

    def answer(self, model_input):
        return self.half(model_input.task, model_input.doc)


class LM(ScriptedLM):
    def __init__(self):
        super().__init__(None)
        self.half = Half()

    def generate_until(self, requests, disable_tqdm=False):
        for request in requests:
            list(request.args[2]["visual"] if len(request.args) > 2 else ())  # looks at them
        return [self.half(request.task_name, request.doc) for request in requests]


@pytest.fixture(scope="module", params=["lm_eval", "lmms_eval"])
def run(request, fixture_data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_JUDGE", "lexical")
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        run, model = (run_lm_eval, LM()) if request.param == "lm_eval" else (run_lmms_eval, Chat())
        return request.param, run(model, TASKS, bootstrap_iters=0)


NUMBERS = [
    ("care_zh", "care_rating_lexical", 5.5),  # five answers are the reference, 10; five share no word with it, 1
    ("care_zh", "care_rating_lexical_stderr", 1.5),  # sample deviation 4.5 · sqrt(10 / 9), over sqrt(10)
    ("care_zh", "care_rating_coverage", 1.0),
    ("care_zh", "care_rating_unscored", 0),
    ("care", "care_rating_lexical", 5.5),
    ("care", "care_rating_lexical_stderr", 4.5 / math.sqrt(29)),  # of thirty: 4.5 · sqrt(30 / 29), over sqrt(30)
    ("culturalvqa", "lave_lexical", 11 / 22),
    ("culturalvqa", "exact_match", 11 / 22),
    ("culturalvqa_blind", "lave_lexical_stderr", 0.5 / math.sqrt(21)),  # 0.5 · sqrt(22 / 21), over sqrt(22)
    ("culturalvqa_blind", "lave_lexical_brazil", 0.5),  # two questions in a row about each country
    ("culturalvqa_blind", "lave_lexical_drinks", 0.6),  # 3 of 5
    ("cedar_text", "acc", 21 / 42),
    ("cedar_text", "acc_zh", 3 / 6),  # by turns of seven languages, an odd number
    ("cedar_text", "acc_var", 0.0),
    ("cedar_multimodal", "acc_avg", 0.5),
    ("cvqa_en", "acc", 2 / 4),
    ("cvqa_en", "acc_macro", 1 / 3),  # Indonesian 2 of 3, Japanese 0 of 1
    ("blend_en", "sem_b", 7 / 14),  # by turns of fourteen regions, an even number: each is all right or all wrong
    ("blend_en", "sem_b_Algeria", 1.0),
    ("blend_en", "sem_b_Assam", 0.0),
    ("blend_mcq", "acc", 8 / 16),
    ("blend_mcq", "unparsed", 0.5),
    ("normad_rule", "acc", 3 / 6),
    ("normad_rule", "acc_yes", 0.5),
    ("culturalbench_easy", "acc", 3 / 5),
    ("culturalbench_hard", "row_acc", 8 / 16),
    ("culturalbench_hard", "acc", 0.0),  # of each question's four rows, two are wrong
    ("culturalbench_hard", "said_true", 2 / 16),
    ("worldcuisines_dish", "acc_authors", 3 / 6),
    ("worldcuisines_open_dish", "contains_dual", 3 / 6),
    ("crosscult_diagnostic", "rouge_l", 100 * 27 / 54),
    ("crosscult_diagnostic", "judge_score_lexical", 10 * 27 / 54),
]


@pytest.mark.parametrize(("task", "metric", "expected"), NUMBERS)
def test_a_number_of_a_row_is_the_one_worked_out_by_hand(run, task, metric, expected):
    assert run[1]["results"][task][f"{metric},none"] == pytest.approx(expected)


def test_a_sample_has_one_record_and_a_row_all_numbers_with_their_errors(run):
    for task, samples in run[1]["samples"].items():
        assert [metric["metric"] for metric in run[1]["configs"][task]["metric_list"]] == ["record"]
        keys = run[1]["results"][task].keys()
        names = {key.removesuffix(",none") for key in keys if key.endswith(",none") and "_stderr" not in key}
        assert "record" not in names
        assert {f"{name}_stderr,none" for name in names} == {key for key in keys if "_stderr" in key}
        assert set(run[1]["higher_is_better"][task]) == set(names)
        for sample in samples:
            record = sample["record"]
            assert {"record", "item", "cluster", "scale", "groups", "data", "question", "references"} <= record.keys()
            assert record["own_data"]
            assert [each["outcome"] for each in record["runs"]] in (["scored"], ["unparsable"])
    record = run[1]["samples"]["care_zh"][0]["record"]
    assert {"outcome": "scored", "rating": 10.0, "tokens": [0, 0]}.items() <= record["runs"][0].items()
    assert record["judge"]["backend"] == "lexical"
    assert not [key for key in run[1]["results"]["crosscult_diagnostic"] if "worldwide" in key]


def test_rows_and_settings_say_that_the_data_are_the_user_s(run):
    for task, count in (("care_zh", 10), ("culturalvqa_blind", 22)):
        [(file, difference)] = run[1]["configs"][task]["metadata"]["own_data"].items()
        assert difference.startswith(f"{count} rows, and the release has"), file
        assert run[1]["results"][task]["alias"].strip(" -") == f"{task} (own data)"
    assert run[1]["groups"]["care"]["alias"] == "care (own data)"


def test_the_harness_s_own_logger_of_samples_reads_every_task(run, monkeypatch):
    module = __import__(f"{run[0]}.loggers.wandb_logger", fromlist=["WandbLogger"])
    logger = module.WandbLogger.__new__(module.WandbLogger)
    recorded = {}
    logger.run, logger.step = SimpleNamespace(log=lambda values, step=None: recorded.update(values)), None
    rows = {name: row for name, row in run[1]["results"].items() if name in run[1]["configs"]}  # groups aside
    logger.post_init({**run[1], "results": rows})
    logger.task_configs = run[1]["configs"]
    monkeypatch.setattr(logger, "_log_samples_as_artifact", lambda *_: None, raising=False)
    logger.log_eval_samples(run[1]["samples"])
    assert recorded
