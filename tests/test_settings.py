"""Settings come from the environment, when asked, and refuse what would otherwise be ignored."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from culture_tasks.errors import SettingsError
from culture_tasks.settings import Settings


def read(**variables):
    return Settings.from_environment(variables)


def refused(**variables):
    with pytest.raises(SettingsError) as caught:
        read(**variables)
    return str(caught.value)


def test_nothing_set_gives_the_defaults():
    settings = read()
    assert settings == Settings()
    assert (settings.judge, settings.data, settings.data_folder, settings.languages) == (None, None, None, None)
    assert not settings.has_endpoint


def test_each_variable_sets_its_field():
    settings = read(
        CULTURE_JUDGE="openai:gpt-4o",
        CULTURE_JUDGE_CONCURRENCY="8",
        CULTURE_JUDGE_CACHE="off",
        CULTURE_JUDGE_MIN_COVERAGE="0.5",
        CULTURE_JUDGE_ASK_AGAIN="0",
        CULTURE_JUDGE_TIMEOUT="2.5",
        CULTURE_JUDGE_DELIMITERS="off",
        CULTURE_JUDGE_MAX_TOKENS="4096",
        CULTURE_JUDGE_TEMPERATURE="0.5",
        CULTURE_JUDGE_REASONING_EFFORT="low",
        CULTURE_JUDGE_EXTRA_BODY='{"top_p": 0.9}',
        CULTURE_TASKS_DATA="~/data",
        CULTURE_TASKS_REVISION="owner/one=v1.0, owner/two=refs/pr/3,",
        CULTURE_TASKS_SUBMISSIONS="out",
        CULTURE_TASKS_LANGUAGES="en, zh,,ar ",
        OPENAI_API_KEY="key",
        OPENAI_BASE_URL="http://localhost/v1",
        CULTURE_TASKS_EXTRA_COLUMNS="allow",
        OPENAI_ORG_ID="org",
        OPENAI_PROJECT_ID="project",
        AZURE_OPENAI_ENDPOINT="https://azure",
        AZURE_OPENAI_API_KEY="azure-key",
        OPENAI_API_VERSION="2024-10-21",
    )
    assert settings.judge == "openai:gpt-4o"
    assert (settings.judge_concurrency, settings.judge_ask_again, settings.judge_timeout) == (8, 0, 2.5)
    assert (settings.judge_min_coverage, settings.judge_delimiters, settings.judge_cache) == (0.5, "off", "off")
    assert settings.judge_parameters == {
        "max_tokens": 4096,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "top_p": 0.9,
    }
    assert settings.data_folder == Path.home() / "data"
    assert settings.revisions == (("owner/one", "v1.0"), ("owner/two", "refs/pr/3"))
    assert settings.submissions == Path("out")
    assert settings.extra_columns == "allow"
    assert settings.languages == ("en", "zh", "ar")
    assert settings.openai_api_key.get_secret_value() == "key"
    assert (settings.openai_base_url, settings.openai_organization) == ("http://localhost/v1", "org")
    assert (settings.openai_project, settings.openai_api_version) == ("project", "2024-10-21")
    assert (settings.azure_endpoint, settings.azure_api_key.get_secret_value()) == ("https://azure", "azure-key")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("main", "it is not owner/name=revision"),
        ("owner/one=", "it is not owner/name=revision"),
        ("=v1", "it is not owner/name=revision"),
        ("a/b=c=d", "it is not owner/name=revision"),
        ("a/b=v1 c/d=v2", "it is not owner/name=revision"),
        ("a/b=v1,a/b=v2", "it names a data set twice"),
    ],
)
def test_revisions_are_pairs_of_name_and_revision(given, said):
    assert said in refused(CULTURE_TASKS_REVISION=given)


def test_the_process_s_own_environment_is_read_when_asked(monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    assert Settings.from_environment().judge == "lexical"
    monkeypatch.setenv("CULTURE_JUDGE", "none")
    assert Settings.from_environment().judge == "none"


@pytest.mark.parametrize("value", ["", "  ", "\t\n"])
def test_a_blank_variable_counts_as_unset(value):
    assert read(CULTURE_JUDGE=value, CULTURE_JUDGE_CONCURRENCY=value, OPENAI_API_KEY=value) == Settings()


def test_space_around_a_value_is_no_part_of_it():
    settings = read(CULTURE_JUDGE=" lexical ", OPENAI_API_KEY="key\n", CULTURE_JUDGE_CACHE=" off")
    assert (settings.judge, settings.openai_api_key.get_secret_value(), settings.cache_file) == ("lexical", "key", None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CULTURE_JUDGE_CONCURRENCY", "many", "CULTURE_JUDGE_CONCURRENCY='many': Input should be a valid integer"),
        ("CULTURE_JUDGE_CONCURRENCY", "0", "CULTURE_JUDGE_CONCURRENCY='0': Input should be greater than or equal to 1"),
        ("CULTURE_JUDGE_CONCURRENCY", "1.5", "Input should be a valid integer"),
        ("CULTURE_JUDGE_MIN_COVERAGE", "95", "less than or equal to 1"),
        ("CULTURE_JUDGE_MIN_COVERAGE", "nan", "CULTURE_JUDGE_MIN_COVERAGE='nan'"),
        ("CULTURE_JUDGE_ASK_AGAIN", "-1", "greater than or equal to 0"),
        ("CULTURE_JUDGE_TIMEOUT", "0", "greater than 0"),
        ("CULTURE_JUDGE_TIMEOUT", "inf", "Input should be a finite number"),
        ("CULTURE_JUDGE_DELIMITERS", "yes", "Input should be 'on' or 'off'"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_variable(name, value, said):
    message = refused(**{name: value})
    assert said in message
    assert message.startswith("settings: ")
    assert message.endswith("Correct or unset the variable.")


def test_all_problems_are_named_at_once():
    said = refused(CULTURE_JUDGE_TIMEOUT="x", CULTURE_JUDGE_ASK_AGAIN="y")
    assert "CULTURE_JUDGE_TIMEOUT='x'" in said
    assert "CULTURE_JUDGE_ASK_AGAIN='y'" in said


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("CULTURE_JUDGE_CONCURENCY", "CULTURE_JUDGE_CONCURRENCY"),
        ("CULTURE_JUDGES", "CULTURE_JUDGE"),
        ("CULTURE_JUGE", "CULTURE_JUDGE"),
        ("CULTURE_TASK_DATA", "CULTURE_TASKS_DATA"),
        ("CULTURE_TASKS_DATAS", "CULTURE_TASKS_DATA"),
        ("CULTURETASKS_DATA", "CULTURE_TASKS_DATA"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(name, nearest):
    assert f"unknown environment variable '{name}'. Did you mean '{nearest}'?" in refused(**{name: "x"})


@pytest.mark.parametrize("name", ["CULTURE", "CULTURE_INFO", "CULTURE_DEFAULT_LANG", "OPENAI_LOG", "PATH"])
def test_variables_of_other_programs_are_left_alone(name):
    assert read(**{name: "x"}) == Settings()


def test_secrets_are_in_no_text_of_the_settings():
    settings = read(OPENAI_API_KEY="sk-secret", AZURE_OPENAI_API_KEY="az-secret")
    for text in (repr(settings), str(settings), settings.model_dump_json()):
        assert "secret" not in text
    assert "sk-secret" not in refused(OPENAI_API_KEY="sk-secret", CULTURE_JUDGE_TIMEOUT="x")


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"])
def test_a_key_or_an_address_says_that_there_is_an_endpoint(name):
    assert read(**{name: "x"}).has_endpoint


def test_settings_never_change_and_know_no_other_field():
    with pytest.raises(ValidationError):
        read().judge = "lexical"
    with pytest.raises(ValidationError):
        Settings(judges="lexical")


def test_equal_settings_are_one_key():
    assert len({read(CULTURE_JUDGE="none"), read(CULTURE_JUDGE="none"), read(OPENAI_API_KEY="a")}) == 2


def test_the_verdict_cache_has_a_place_of_its_own(monkeypatch):
    assert read(CULTURE_JUDGE_CACHE="~/v.sqlite3").cache_file == Path.home() / "v.sqlite3"
    assert read().cache_file.name == "verdicts.sqlite3"
    assert "culture-tasks" in read().cache_file.parts


def test_the_proxy_is_the_environment_s_for_the_address(monkeypatch):
    for name in (
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    assert Settings.proxy_for("https://api.example.org/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.internal")
    assert Settings.proxy_for("https://api.example.org/v1") == "http://proxy:3128"
    assert Settings.proxy_for("http://api.example.org/v1") is None
    assert Settings.proxy_for("https://localhost:8000/v1") is None
    assert Settings.proxy_for("https://llm.internal/v1") is None
