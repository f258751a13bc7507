"""CrossCult-KIBench's Table 4 with the user's rows, and the names of methods."""

from support.sample_files import crosscult_sample, write_run

from culture_tasks import published
from culture_tasks.insertion import methods
from culture_tasks.report.building import Options, build
from culture_tasks.report.wording import marks_of

ROLES = ("reliability", "generality", "cross_language_locality", "cross_scenario_locality")
ALONE = {"device": "NVIDIA A100", "one_at_a_time": True, "requests": 32, "request_ms": 1800.0, "insert_ms": 300.0}
COSTS = ALONE | {"insertions": 8, "train_ms": 1600.0, "train_gib": 17.5, "peak_gib": 21.0, "parameters": 8.54}


def write(folder, method, costs, stamp="20260101_000000", roles=ROLES):
    tasks = {f"crosscult_single_{role}": [crosscult_sample(n, 5.0, 9.0, role=role) for n in range(6)] for role in roles}
    arguments = {"model": "knowledge_insertion", "model_args": f"pretrained=m,method={method}"}
    more = {} if costs is None else {"insertion_costs": costs}
    write_run(folder / method, "m", tasks, stamp, config=arguments, **more)


def table_4(folder, **options):
    report = build([str(folder)], Options(**options))
    return next((table for table in report.tables if table.key == "crosscult_table_4"), None)


def cells(table, row=0):
    return dict(zip((column.key for column in table.columns), table.rows[row].cells, strict=True))


def test_rows_have_what_the_result_files_say(tmp_path):
    write(tmp_path, "mcki", COSTS | {"answered": 48, "found": 3})
    write(tmp_path, "finetune", COSTS | {"train_ms": None, "train_gib": None, "batch_size": 16, "one_at_a_time": False})
    write(tmp_path, "ike", None)
    table = table_4(tmp_path)
    assert [row.labels for row in table.rows] == [
        ("m", "FineTune", "NVIDIA A100, batches of 16"),
        ("m", "MCKI", "NVIDIA A100, one at a time"),
    ]
    alone, batched = cells(table, 1), cells(table, 0)
    values = {name: cell.value for name, cell in alone.items()}
    assert values == {
        "train_ms": 1600.0,
        "insert_ms": 300.0,
        "request_ms": 1800.0,
        "train_gib": 17.5,
        "peak_gib": 21.0,
        "parameters": 8.54,
        "answered": 48.0,
        "found": 3.0,
    }
    assert not any(cell.flags for cell in alone.values())
    assert batched["train_ms"] is None
    flagged = {name for name, cell in batched.items() if cell and "in_batches" in cell.flags}
    assert flagged == {"insert_ms", "request_ms", "peak_gib"}
    assert marks_of(batched["request_ms"])


def test_the_papers_rows_stand_below(tmp_path):
    write(tmp_path, "mcki", COSTS)
    table = table_4(tmp_path, published=True)
    assert len(table.rows) == 1 + len(published.load("crosscult_table_4").rows)
    mcki = next(at for at, row in enumerate(table.rows) if row.labels == ("InternVL3.5-8B", "MCKI", "published"))
    printed = [cell and cell.value for cell in cells(table, mcki).values()]
    assert printed == [1655.3, 306.0, 1902.0, 17.7, 21.1, 8.54, None, None]
    finetune = next(at for at, row in enumerate(table.rows) if row.labels[:2] == ("Qwen3.5-9B", "FineTune"))
    assert cells(table, finetune)["train_ms"] is None


def test_without_rows_of_the_users_the_papers_table_is_shown_as_printed(tmp_path):
    write(tmp_path, "mcki", None)
    report = build([str(tmp_path)], Options(published=True))
    keys = {table.key for table in report.tables}
    assert "published_crosscult_table_4" in keys
    assert not keys & {"crosscult_table_4", "published_crosscult_table_2"}


def test_several_files_of_one_row_are_combined(tmp_path):
    write(tmp_path, "mcki", COSTS, roles=ROLES[:2])
    write(
        tmp_path, "mcki", COSTS | {"request_ms": 600.0, "requests": 96, "peak_gib": 30.0}, "20260102_000000", ROLES[2:]
    )
    found = cells(table_4(tmp_path))
    # (32 * 1800 + 96 * 600) / 128
    assert (found["request_ms"].value, found["peak_gib"].value) == (900.0, 30.0)


def test_files_without_costs_have_no_such_table(tmp_path):
    for costs in (None, "fast", {"device": "x", "request_ms": "soon"}):
        write(tmp_path, "mcki", costs)
        assert table_4(tmp_path) is None


def test_every_method_of_the_paper_has_its_name():
    labels = set(methods.labels().values())
    for paper in ("crosscult_table_2", "crosscult_table_3", "crosscult_table_4"):
        assert {row.keys["method"] for row in published.load(paper).rows} <= labels


def test_a_method_of_another_package_is_called_what_it_calls_itself(tmp_path):
    write(tmp_path, "reminder", COSTS)
    assert table_4(tmp_path).rows[0].labels[:2] == ("m", "reminder")
