"""What every run of a harness has in these tests: the bundled data, and text overlap for a judge."""

import pytest


@pytest.fixture(autouse=True)
def toys(monkeypatch, fixture_data):
    """Sets the bundled data and the lexical judge."""
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))


@pytest.fixture(params=["lm_eval", "lmms_eval"])
def harness(request):
    """The name of each harness."""
    return request.param
