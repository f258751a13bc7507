"""The reader of sample files: lines, records, and the error that names the file, the line and the field."""

import json
from dataclasses import replace

import pytest
from support.checked_runs import samples
from support.sample_files import JUDGE, cedar_sample, vqa_record, write_run

from culture_tasks.cli.main import main
from culture_tasks.errors import DataError
from culture_tasks.results.loading import Names, load
from culture_tasks.results.logged_samples import judged_samples
from culture_tasks.results.samples import parse_json, samples_of

RUN = {"response": "feijoada", "outcome": "scored", "rating": 2.0, "tokens": [7, 3], "rationale": "a dish of Brazil"}
SCALE = vqa_record(1, 1.0)["scale"]


def write_lines(tmp_path, *samples):
    path = tmp_path / "samples.jsonl"
    path.write_text("\n" + "\n".join(map(json.dumps, samples)), encoding="utf-8")
    return path


def one(tmp_path, **changes):
    return next(samples_of(write_lines(tmp_path, {"doc_id": 3, "lave": vqa_record(1, 1.0) | changes}), None))


def test_a_record_is_read_with_its_types(tmp_path):
    sample = one(tmp_path, runs=[RUN | {"discounts": {"cached_tokens": 5}}], run_scores=[1.0, None])
    assert sample.logged["metric"] == "lave"
    record = sample.record
    assert (record.benchmark, record.item, record.groups["facet"]) == ("culturalvqa", "q1", "food")
    assert (record.judge.name, record.judge.sampling) == ("openai:judge-1", {"temperature": 0})
    assert (record.score, record.run_scores, record.scale.high) == (1.0, (1.0, None), 1.0)
    verdict = record.runs[0].verdict()
    assert (verdict.score, verdict.usage.prompt_tokens, verdict.usage.cached_tokens) == (2.0, 7, 5)
    assert verdict.rationale == "a dish of Brazil"
    # Items and groups may be numbers.
    record = one(tmp_path, item=7, cluster=3, groups={"facet": 2, "country": None}).record
    assert (record.item, record.cluster, record.groups) == ("7", "3", {"facet": "2", "country": None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"record": 1}, "line 2: the record has layout 1; this version reads 2"),
        ({"metric": None}, "line 2, field 'metric': found None"),
        ({"references": "feijoada"}, "line 2, field 'references': found 'feijoada'"),
        ({"runs": []}, "line 2, field 'runs'"),
        ({"runs": [RUN | {"response": 7}]}, "line 2, field 'runs.0.response': found 7"),
        ({"runs": [RUN | {"outcome": "splendid"}]}, "line 2, field 'runs.0.outcome'"),
        ({"runs": [RUN | {"tokens": [-1, 0]}]}, "line 2, field 'runs.0.tokens.0'"),
        ({"outcomes": {"scored": 10**400}}, "line 2, field 'outcomes.scored'"),
        ({"score": float("inf")}, "line 2, field 'score': found inf"),
        ({"judge": "me"}, "line 2, field 'judge'"),
        ({"judge": JUDGE | {"sampling": "hot"}}, "line 2, field 'judge.sampling'"),
        ({"scale": SCALE | {"low": 5.0, "high": 0.0}}, "line 2, field 'scale'"),
        ({"scale": SCALE | {"low": float("-inf")}}, "line 2, field 'scale'"),
        ({"scale": SCALE | {"times": 0}}, "expected finite ends in order, a positive factor"),
        ({"scale": SCALE | {"better": "bigger"}}, "line 2, field 'scale.better'"),
    ],
)
def test_a_damaged_record_is_named(tmp_path, changes, message):
    with pytest.raises(DataError) as caught:
        one(tmp_path, **changes).record  # noqa: B018 - read when it is asked for
    assert str(caught.value).startswith(str(tmp_path))
    assert message in str(caught.value)


def test_a_line_that_is_no_sample_is_named(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"{\n[]\n" + b"[" * 100_000)
    for sample, message in zip(
        samples_of(path, None), ("not JSON", "expected an object, found list", "not JSON"), strict=True
    ):
        with pytest.raises(DataError, match=f"line {sample.number}: {message}"):
            sample.content  # noqa: B018


PARTS = {  # of the ten lines of a file
    "half": lambda lines: lines[:5],
    "empty": lambda lines: [],
    "half, twice": lambda lines: lines[:5] * 2,
    "another run's, too": lambda lines: [*lines, *(line.replace('"doc_id": ', '"doc_id": 1') for line in lines)],
    "twice": lambda lines: lines * 2,
}


@pytest.mark.parametrize("part", PARTS)
def test_a_file_that_isnt_the_whole_run_is_taken_for_it_nowhere(part, tmp_path, capsys):
    path = write_run(tmp_path, "org/model", samples({"zh": 10, "ar": 10}))
    file = path.with_name("20260101_000000_samples_care_zh.jsonl")
    lines = [
        json.dumps({"doc_id": number} | json.loads(line))
        for number, line in enumerate(file.read_text("utf-8").splitlines())
    ]
    file.write_text("".join(f"{line}\n" for line in PARTS[part](lines)), encoding="utf-8")
    for command in (
        "rejudge {} --judge lexical",
        "rejudge {} --judge openai:judge-1 --failed-only",
        "spotcheck draw {} -n 4 -o {}/sheet",
        "cost --results {}",
    ):
        assert (main(command.format(tmp_path, tmp_path).split()), len(list(tmp_path.iterdir()))) == (1, 3)
        assert f"{file}: expected a line for each document of the run (10, by its" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "report"), "--formats", "markdown"]) == 0
    assert "1 file couldn't be read in whole" in capsys.readouterr().out


def test_lines_have_their_numbers_and_offsets(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes('\n{}\n  \n{"a": "é"}'.encode())
    lines = list(samples_of(path, None))
    assert [(sample.number, sample.content, sample.logged) for sample in lines] == [
        (2, {}, {}),
        (4, {"a": "é"}, {}),
    ]
    assert all(path.read_bytes()[sample.offset :].startswith(b"{") for sample in lines)


def test_the_prompt_is_read_as_each_harness_logs_it(tmp_path):
    path = write_lines(
        tmp_path,
        {"input": "of lmms-eval"},
        {"arguments": {"gen_args_0": {"arg_0": "of lm-eval", "arg_1": {}}}},
        {"input": [{"role": "user", "content": "a chat"}]},
        {},
    )
    first, second, third, fourth = (sample.prompt for sample in samples_of(path, None))
    assert (first, second, fourth) == ("of lmms-eval", "of lm-eval", None)
    assert json.loads(third) == [{"role": "user", "content": "a chat"}]
    # Half of a surrogate pair is text.
    assert parse_json(b'"\\ud800 half"') == "\ud800 half"


def test_a_record_that_counts_no_reply_is_left_out(tmp_path):
    samples = [cedar_sample("1", "en", "fear", "fear"), cedar_sample("2", "en", "fear", "awe")]
    samples[1]["record"]["outcomes"] = {"scored": 0}
    loading = load([str(write_run(tmp_path, "org/model", {"cedar_text": samples}))], Names())
    assert [(problem.kind, problem.lines) for problem in loading.problems] == [("unknown_record", 1)]
    [run] = loading.runs
    assert (run.items, run.unparsed) == (1, 0.0)
    assert replace(run, samples=replace(run.samples, outcomes={"scored": 0})).unparsed is None


def test_a_judge_is_shown_a_record_without_references_or_with_numbers(tmp_path):
    for references, texts in ((None, ()), ([1868, "Meiji"], ("1868", "Meiji"))):
        record = vqa_record(1, 1.0) | {"references": references, "runs": [RUN]}
        record = {name: value for name, value in record.items() if value is not None}
        [sample] = judged_samples(samples_of(write_lines(tmp_path, {"lave": record}), None))
        [(_, item)] = sample.expected(failed_only=False)
        assert item.references == texts


def test_a_file_with_records_on_two_scales_is_refused(tmp_path):
    records = [vqa_record(number, 1.0) | {"runs": [RUN]} for number in range(2)]
    records[1]["scale"] = SCALE | {"high": 1e308}
    path = write_lines(tmp_path, *({"lave": record} for record in records))
    with pytest.raises(DataError, match=r"line 3: not on the scale of the file's first record"):
        judged_samples(samples_of(path, None))
