"""Every benchmark's tables: a loading stops at the first problem that the check lists."""

from __future__ import annotations

import json

import pytest

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.data.files import read_file
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

OURS = [name for name, benchmark in benchmarks().items() if benchmark.task_files is None]


def tables(benchmark):
    tasks = (entry for entry in benchmarks()[benchmark].entries() if isinstance(entry, Task))
    return list(dict.fromkeys(table for task in tasks for table in task.data.sources if table.id))


@pytest.mark.parametrize("benchmark", OURS)
@pytest.mark.parametrize("change", ["repeated", "misspelt", "without"])
def test_a_loading_stops_at_the_first_problem_that_the_check_lists(tmp_path, fixture_data, benchmark, change):
    for table in tables(benchmark):
        (path,) = table.files(Settings(data=fixture_data))
        rows = [dict(row) for row in read_file(path, None, table.pairs).rows]
        required = next(name for name, field in table.model.model_fields.items() if field.is_required())
        column = next(name for name in rows[0] if table.aliases.get(name, name.lower()) == required)
        if change == "repeated":
            rows, said = [*rows, rows[0]], f"row {len(rows) + 1}, field "
        elif change == "misspelt":
            rows, said = [{f"{name}x": value for name, value in row.items()} for row in rows], f"no column {required!r}"
        else:
            said = f"row {len(rows)}, field {required!r}: found nothing. Expected a value."
            del rows[-1][column]
        copy = (tmp_path / path.relative_to(fixture_data)).with_suffix(".json")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(rows))
        settings = Settings(data=tmp_path)
        _, (first, *_) = table.check(settings, set())
        assert said in first
        with pytest.raises(DataError) as caught:
            table.rows(settings)
        assert str(caught.value) == first
