"""Which requests an insertion method routed wrongly, and what other thresholds would have done."""

import pytest
from support.sample_files import crosscult_sample, write_run

from culture_tasks.report.building import Options, build
from culture_tasks.report.figures.selecting import charts

ROLES = ("reliability", "generality", "cross_language_locality", "cross_scenario_locality")


def routed(similarity, threshold=0.5):
    """What a record says of a request's routing, as far as the report reads it."""
    return {"similarity": similarity, "threshold": threshold, "activated": 0 if similarity >= threshold else None}


def samples(role, similarities, score=5.0):
    """Samples of a role; partitions come by turns."""
    return [
        crosscult_sample(number, score, 50.0, ("zh", "ar")[number % 2], role, facts=routed(similarity))
        for number, similarity in enumerate(similarities)
    ]


RUN = {
    "reliability": [1.0, 1.0, 1.0, 1.0, 1.0, 0.4],
    "generality": [0.9, 0.8, 0.3, 0.2, 0.7, 0.6],
    "cross_language_locality": [0.1, 0.2, 0.1, 0.2, 0.1, 0.2],
    "cross_scenario_locality": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
}


def write(folder, method, lines):
    tasks = {f"crosscult_single_{role}": lines(role) for role in ROLES}
    arguments = {"model": "knowledge_insertion", "model_args": f"pretrained=m,method={method}"}
    write_run(folder / method, "m", tasks, config=arguments)


@pytest.fixture(scope="module", params=[5.0, None], ids=["judged", "not judged"])
def report(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write(folder, "mcki", lambda role: samples(role, RUN[role], request.param))
    write(folder, "base", lambda role: [crosscult_sample(number, 5.0, 9.0, role=role) for number in range(6)])
    return build([str(folder)], Options())


def table(report, key):
    return next(table for table in report.tables if table.key == key)


def values(table, row):
    columns = (column.key for column in table.columns)
    return {key: cell and cell.value for key, cell in zip(columns, table.rows[row].cells, strict=True)}


def test_rates_by_role_partition_and_topic(report):
    found = table(report, "crosscult_single_routing")
    assert {row.labels[1] for row in found.rows} == {"MCKI"}  # the base compares nothing
    assert [row.labels[2] for row in found.rows] == [
        "Abstention: Reliability",
        "Abstention: Generality",
        "False activation: Cross-Lang. Loc.",
        "False activation: Cross-Scen. Loc.",
    ]
    reliability, generality, language, scenario = (values(found, row) for row in range(4))
    # 1 of 6 is not used: number 5, of ar (odd numbers) and of the third topic (numbers 2 and 5)
    assert reliability["all"] == pytest.approx(100 / 6)
    assert (reliability["zh"], reliability["ar"]) == (0.0, pytest.approx(100 / 3))
    assert [reliability[topic] for topic in ("social", "religious", "ethical")] == [0.0, 0.0, 50.0]
    assert generality["all"] == pytest.approx(100 / 3)
    assert language["all"] == 0.0
    assert scenario["all"] == pytest.approx(100 / 6)  # a similarity of the threshold is enough
    assert scenario["similarity"] == pytest.approx(1.0 / 6)
    assert scenario["threshold"] == 0.5
    low, high = found.rows[0].cells[0].low, found.rows[0].cells[0].high
    assert 0 < low < 100 / 6 < high < 100
    assert not {flag for row in found.rows for cell in row.cells if cell for flag in cell.flags} & {"unjudged"}


def test_other_thresholds_are_worked_out_from_the_similarities_and_drawn(report):
    found = table(report, "crosscult_single_thresholds")
    by_threshold = {row.labels[2]: values(found, at) for at, row in enumerate(found.rows)}
    assert list(by_threshold) == [f"{step / 10:.2f}" for step in range(11)]
    assert by_threshold["0.00"] == {
        "reliability": 0.0,
        "generality": 0.0,
        "cross_language_locality": 100.0,
        "cross_scenario_locality": 100.0,
    }
    assert by_threshold["0.20"]["cross_language_locality"] == 50.0
    assert by_threshold["0.50"]["generality"] == pytest.approx(100 / 3)
    assert by_threshold["1.00"]["reliability"] == pytest.approx(100 / 6)
    assert by_threshold["1.00"]["generality"] == 100.0
    [chart] = (chart for chart in charts(report) if chart.key == "crosscult_thresholds")
    [panel] = chart.panels
    assert (panel.title, chart.value) == ("m + mcki · single", "Routed wrongly (percent)")
    assert panel.groups == tuple(f"{step / 20:.2f}" for step in range(21))
    assert [series.label for series in panel.series] == [
        "Reliability (abstained)",
        "Generality (abstained)",
        "Cross-Lang. Loc. (activated)",
        "Cross-Scen. Loc. (activated)",
    ]
    assert panel.series[2].cells["0.15"].value == 50.0


def test_in_chains_the_wrong_entry_is_told_from_abstention(tmp_path):
    entries = {"reliability": ["zh", "zh", "en", None], "generality": ["ar", "zh", "zh", "zh"], "locality": ["zh"] * 4}
    tasks = {
        f"crosscult_sequential_{role}_{partition}": [
            crosscult_sample(
                number,
                5.0,
                50.0,
                partition,
                role,
                3,
                facts={**routed(0.1 if entry is None else 0.9), "entry": entry},
            )
            for number, entry in enumerate(entries[role])
        ]
        for role in entries
        for partition in ("en", "zh", "ar")
    }
    write_run(tmp_path, "m", tasks, config={"model": "x", "model_args": "pretrained=m,method=serac"})
    found = table(build([str(tmp_path)], Options()), "crosscult_sequential_routing")
    reliability, generality, locality = (values(found, row) for row in range(3))
    # of the 3 of 4 that used something, by the language asked for: en 2 wrong, zh 1, ar 3
    assert reliability["wrong_entry"] == pytest.approx(100 * 6 / 9)
    assert reliability["all"] == 25.0
    # en 4 wrong, zh 1, ar 3
    assert generality["wrong_entry"] == pytest.approx(100 * 8 / 12)
    assert (locality["all"], locality["wrong_entry"]) == (100.0, None)


def test_a_run_that_routes_nothing_has_no_such_tables(tmp_path):
    write(tmp_path, "ike", lambda role: [crosscult_sample(number, 5.0, 9.0, role=role) for number in range(6)])
    report = build([str(tmp_path)], Options())
    assert not [table.key for table in report.tables if table.key.endswith(("_routing", "_thresholds"))]
    assert not {value.statistic for value in report.groups} & {"routing_error", "similarity", "threshold"}
