"""CrossCult-KIBench's layouts beside those of its tables: retention, diagnosis, and what methods cost."""

import itertools

import pytest
from support.checked_runs import write_sample
from support.reports import figures_of, report_of, row_of, rows_of, tables_of, values_of
from support.sample_files import JUDGE, crosscult_sample, write_inserted, write_run

from culture_tasks import published
from culture_tasks.report.wording import marks_of

ORDERS = (("en", "zh", "ar"), ("ar", "zh", "en"))
ORDER_NAMES = ("English → Chinese → Arabic", "Arabic → Chinese → English")
ROLES = ("reliability", "generality", "cross_language_locality", "cross_scenario_locality")
SEVEN = ("base", "finetune", "ike", "mend", "serac", "mscke", "mcki")
NAMES = ("Base Model", "FineTune", "IKE", "MEND", "SERAC", "MSCKE", "MCKI")


def chain(order, score):
    """Samples of every step of a chain: the score, less the number of insertions since, in both measures."""
    return {
        f"crosscult_retention_{'_'.join(order)}_{partition}_after_{after}": [
            crosscult_sample(number, score + number % 2 - lost, 10.0 * (score - lost), partition, after=after)
            for number in range(4)
        ]
        for after in (1, 2, 3)
        for place, partition in enumerate(order[:after], start=1)
        for lost in (after - place,)
    }


def single(count, score, rouge_l, roles=ROLES):
    """Samples of the tasks of one insertion."""
    return {
        f"crosscult_single_{role}": [
            crosscult_sample(number, score, rouge_l, ("zh", "ar")[number % 2], role) for number in range(count)
        ]
        for role in roles
    }


def test_retention_has_a_row_for_each_method_chain_and_language_and_a_column_for_each_step(tmp_path):
    """Two methods and two orders, one of which the base didn't run."""
    for method, score, order in (("base", 4.0, 0), ("mcki", 8.0, 0), ("mcki", 8.0, 1)):
        write_inserted(tmp_path / f"{method}{order}", "m", method, chain(ORDERS[order], score))
    report = report_of(tmp_path)
    table = tables_of(report)["crosscult_retention"]
    assert [(column.over, column.label) for column in table.columns] == [("Step", "1"), ("Step", "2"), ("Step", "3")]
    assert [row.labels for row in rows_of(table)] == [
        ("m", method, "judge-1", order, language)
        for method, order in (("Base Model", 0), ("MCKI", 0), ("MCKI", 1))
        for order, languages in [(ORDER_NAMES[order], ORDER_NAMES[order].split(" → "))]
        for language in languages
    ]
    english = row_of(table, ("m", "MCKI", "judge-1", ORDER_NAMES[0], "English"))
    # scores of 8, 9, 8, 9 less one for each later insertion: sd 0.577, se 0.289, t(3) 3.182
    cell = english["after_3"]
    assert (cell.value, cell.rank) == (6.5, None)
    assert (cell.low, cell.high) == pytest.approx((6.5 - 0.9186, 6.5 + 0.9186), abs=1e-3)
    assert values_of(table, ("m", "Base Model"))["after_3"] == 2.5
    arabic = values_of(tables_of(report)["crosscult_retention_rouge_l"], ("m", "MCKI", "judge-1", ORDER_NAMES[1]))
    assert arabic == {"after_1": 80.0, "after_2": 70.0, "after_3": 60.0}
    figures = figures_of(report)
    titles = [f"m + base · {ORDER_NAMES[0]}", *(f"m + mcki · {order}" for order in ORDER_NAMES)]
    for key in ("crosscult_retention", "crosscult_retention_rouge_l"):
        assert sorted(figures[key].panels) == sorted(titles)
    lines = figures["crosscult_retention"].panels[titles[0]]
    assert {name: list(steps) for name, steps in lines.items()} == {
        "English": ["1", "2", "3"],
        "Chinese": ["2", "3"],
        "Arabic": ["3"],
    }


def test_retention_of_which_nobody_ran_all_steps_is_shown(tmp_path):
    samples = {name: lines for name, lines in chain(ORDERS[0], 8.0).items() if name.endswith("en_after_3")}
    write_inserted(tmp_path, "m", "mcki", samples)
    report = report_of(tmp_path)
    cells = values_of(tables_of(report)["crosscult_retention"])
    assert {key: value for key, value in cells.items() if value} == {"after_3": 6.5}
    assert [cell.flags for cell in report.units["crosscult_retention_en_zh_ar"].cells.values()] == [("incomplete",)]


def test_tables_and_figures_have_all_methods_beside_the_papers(tmp_path):
    for number, method in enumerate(SEVEN):
        samples = single(4, float(number), 10.0 * number)
        for role, partition in itertools.product(("reliability", "generality", "locality"), ORDERS[0]):
            samples[f"crosscult_sequential_{role}_{partition}"] = [
                crosscult_sample(each, float(number), 10.0 * number, partition, role, 3) for each in range(4)
            ]
        for order in ORDERS:
            samples |= chain(order, 3.0 + number)
        write_inserted(tmp_path / method, "m", method, samples)
    report = report_of(tmp_path, published=True)
    for number in (2, 3):
        table = tables_of(report)[f"crosscult_table_{number}"]
        own = {row.labels[1]: row.cells[-1].value for row in rows_of(table) if not row.published}
        assert own == {name: float(n) for n, name in enumerate(NAMES)}
        assert own.keys() == {row.labels[1] for row in rows_of(table) if row.published}
        assert len(rows_of(table)) == 7 + 14
    figures = figures_of(report)
    titles = {f"m + {method} · {order}" for method in SEVEN for order in ORDER_NAMES}
    assert set(figures["crosscult_retention"].panels) == titles
    # with and without the insertion, for all that insert
    assert set(figures["crosscult_insertion"].panels) == {f"m + {method}" for method in SEVEN[1:]}
    overs = [column.over for column in tables_of(report)["crosscult_reliability"].columns]
    assert overs == ["By topic"] * 3 + ["By language"] * 3


def test_diagnostic_has_languages_topics_and_all(tmp_path):
    samples = [
        crosscult_sample(number, score + number % 2, 10.0 * score, partition, "diagnostic", 0)
        for partition, score in (("en", 8.0), ("zh", 6.0), ("ar", 1.0))
        for number in range(6)
    ]
    write_run(tmp_path, "m", {"crosscult_diagnostic": samples})
    report = report_of(tmp_path)
    table = tables_of(report)["crosscult_diagnostic_by_language"]
    overs = ["English", "Chinese", "Arabic", "Social", "Religious", "Ethical", "All"]
    assert list(dict.fromkeys(column.over for column in table.columns)) == overs
    cells = row_of(table)
    assert [cells[f"{name}_judge_score"].value for name in ("en", "zh", "ar", "all")] == [8.5, 6.5, 1.5, 5.5]
    assert [cells[f"{name}_rouge_l"].value for name in ("en", "zh", "ar", "all")] == [80.0, 60.0, 10.0, 50.0]
    # numbers 0 and 3 of each partition are social: one even, one odd
    assert (cells["social_judge_score"].value, cells["social_judge_score"].n) == (5.5, 6)
    assert cells["en_judge_score"].low < 8.5 < cells["en_judge_score"].high
    assert "crosscult_diagnostic" in figures_of(report)


def test_a_judge_s_sample_leaves_the_overlap_that_of_all_requests(tmp_path):
    tasks = single(6, 5.0, 50.0)
    whole = write_run(tmp_path, "m", tasks)
    better = {"judge": JUDGE | {"model": "judge-2"}}
    graded = {task: [{"record": own[n]["record"] | better} for n in (0, 1)] for task, own in tasks.items()}
    write_sample(whole, "m", graded, "20260102_000000")
    report = report_of(tmp_path)
    [key] = [key for key, cell in report.units["crosscult_single"].cells.items() if "subset" in cell.flags]
    found = [one for one in report.groups if (one.row, one.statistic) == (key, "rouge_l")]
    of_roles = [cell for cell in found if {name for name, _ in cell.where} == {"role"}]
    assert {cell.n for cell in of_roles} == {6}
    assert not any("subset" in cell.flags for cell in found)
    items = {report.samples.rows(run, cell.where[:1]).items.size for cell in of_roles for run in cell.runs}
    assert items <= {0, 6}  # whose samples open


# Table 4: what methods cost

COSTS = {"device": "NVIDIA A100", "one_at_a_time": True, "requests": 32, "request_ms": 1800.0, "insert_ms": 300.0}
COSTS |= {"insertions": 8, "train_ms": 1600.0, "train_gib": 17.5, "peak_gib": 21.0, "parameters": 8.54}


def write_costs(folder, method, costs, *stamp, roles=ROLES):
    more = {} if costs is None else {"insertion_costs": costs}
    write_inserted(folder / method, "m", method, single(6, 5.0, 9.0, roles), *stamp, **more)


def table_4(folder, **options):
    return tables_of(report_of(folder, **options)).get("crosscult_table_4")


def test_rows_have_what_the_result_files_say(tmp_path):
    folder = tmp_path / "all"
    write_costs(folder, "mcki", COSTS | {"answered": 48, "found": 3})
    slow = {"train_ms": None, "train_gib": None, "batch_size": 16, "one_at_a_time": False}
    write_costs(folder, "finetune", COSTS | slow)
    write_costs(folder, "ike", None)
    write_costs(folder, "reminder", COSTS)  # a method of another package is called what it calls itself
    table = table_4(folder)
    assert [row.labels for row in rows_of(table)] == [
        ("m", "FineTune", "NVIDIA A100, batches of 16"),
        ("m", "MCKI", "NVIDIA A100, one at a time"),
        ("m", "reminder (not in the paper)", "NVIDIA A100, one at a time"),
    ]
    batched, alone = row_of(table, 0), row_of(table, 1)
    names = ("train_ms", "insert_ms", "request_ms", "train_gib", "peak_gib", "parameters", "answered", "found")
    numbers = (1600.0, 300.0, 1800.0, 17.5, 21.0, 8.54, 48.0, 3.0)
    assert values_of(table, 1) == dict(zip(names, numbers, strict=True))
    assert not any(cell.flags for cell in alone.values())
    assert batched["train_ms"] is None
    flagged = {name for name, cell in batched.items() if cell and "other_settings" in cell.flags}
    assert flagged == {"insert_ms", "request_ms", "peak_gib"}
    assert marks_of(batched["request_ms"])
    more = COSTS | {"request_ms": 600.0, "requests": 96, "peak_gib": 30.0}  # several files of one row are combined
    write_costs(tmp_path / "two", "mcki", COSTS, roles=ROLES[:2])
    write_costs(tmp_path / "two", "mcki", more, "20260102_000000", roles=ROLES[2:])
    found = values_of(table_4(tmp_path / "two"))
    assert (found["request_ms"], found["peak_gib"]) == ((32 * 1800.0 + 96 * 600.0) / 128, 30.0)


def test_the_papers_rows_stand_below_the_users_or_as_printed(tmp_path):
    write_costs(tmp_path / "ours", "mcki", COSTS)
    table = table_4(tmp_path / "ours", published=True)
    assert len(rows_of(table)) == 1 + len(published.load("crosscult_table_4").rows)
    printed = list(values_of(table, ("InternVL3.5-8B", "MCKI", "published")).values())
    assert printed == [1655.3, 306.0, 1902.0, 17.7, 21.1, 8.54, None, None]
    assert row_of(table, ("Qwen3.5-9B", "FineTune"))["train_ms"] is None
    for number, costs in enumerate((None, "fast", {"device": "x", "request_ms": "soon"})):
        write_costs(tmp_path / str(number), "ike", costs)
        assert table_4(tmp_path / str(number), published=True) is None
