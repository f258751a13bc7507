"""Settings come from the environment, when asked, and refuse what would otherwise be ignored."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

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
    assert settings == Settings() == read(CULTURE_JUDGE="", CULTURE_JUDGE_CONCURRENCY=" \t\n", OPENAI_API_KEY="  ")
    assert (settings.judge, settings.data, settings.data_folder, settings.languages) == (None, None, None, None)
    assert (settings.has_endpoint, settings.cache_file.name) == (False, "verdicts.sqlite3")
    assert "culture-tasks" in settings.cache_file.parts
    with pytest.raises(ValidationError):
        settings.judge = "lexical"
    assert len({read(CULTURE_JUDGE="none"), read(CULTURE_JUDGE="none"), read(OPENAI_API_KEY="a")}) == 2


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("CULTURE_JUDGE", " openai:gpt-4o ", "judge", "openai:gpt-4o"),
        ("CULTURE_JUDGE_CONCURRENCY", "8", "judge_concurrency", 8),
        ("CULTURE_JUDGE_CACHE", " off", "cache_file", None),
        ("CULTURE_JUDGE_CACHE", "~/v.sqlite3", "cache_file", Path.home() / "v.sqlite3"),
        ("CULTURE_JUDGE_EXTRA_BODY", '{"top_p": 0.9}', "judge_parameters", {"top_p": 0.9}),
        ("CULTURE_SUBSET", "400:7", "subset", (400, 7)),
        ("CULTURE_TASKS_DATA", "~/data", "data_folder", Path.home() / "data"),
        ("CULTURE_TASKS_REVISION", "o/a=v1.0, o/b=refs/pr/3,", "revisions", (("o/a", "v1.0"), ("o/b", "refs/pr/3"))),
        ("CULTURE_TASKS_LANGUAGES", "en, zh,,ar ", "languages", ("en", "zh", "ar")),
        ("OPENAI_API_KEY", "key\n", "openai_api_key", SecretStr("key")),
    ],
)
def test_each_variable_sets_its_field(name, text, field, value):
    settings = read(**{name: text})
    assert getattr(settings, field) == value
    endpoints = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY")
    assert settings.has_endpoint == (name in endpoints)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CULTURE_JUDGE_CONCURRENCY", "many", "CULTURE_JUDGE_CONCURRENCY='many': Input should be a valid integer"),
        ("CULTURE_JUDGE_TIMEOUT", "inf", "Input should be a finite number"),
        ("CULTURE_JUDGE_DELIMITERS", "yes", "Input should be 'on' or 'off'"),
        ("CULTURE_TASKS_REVISION", "main", "it is not owner/name=revision"),
        ("CULTURE_TASKS_REVISION", "a/b=x/../../../secret", "it is not owner/name=revision"),
        ("CULTURE_TASKS_REVISION", "a/b=v1,a/b=v2", "it names a data set twice"),
        *(("CULTURE_JUDGE_EXTRA_BODY", body, "not a JSON object") for body in ("[1]", '{"a": NaN}', "[" * 100_000)),
        ("CULTURE_JUDGE_EXTRA_BODY", '{"model": "x"}', "may not set model"),
        *(
            ("CULTURE_JUDGE_EXTRA_BODY", f'{{"max_tokens": {limit}}}', "expected a whole number of at least 1, or null")
            for limit in ("0", "-4", "1e400", '"abc"')
        ),
        ("CULTURE_JUDGE_EXTRA_BODY", '{"temperature": "hot"}', "expected a number of at least 0, or null"),
        ("CULTURE_JUDGE_EXTRA_BODY", '{"max_completion_tokens": 2}', "limit of tokens is max_tokens"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_variable(name, value, said):
    message = refused(**{name: value, "CULTURE_JUDGE_PATIENCE": "x"})
    assert said in message
    assert "CULTURE_JUDGE_PATIENCE='x'" in message  # all problems are named at once
    assert message.startswith("settings: ")
    assert message.endswith("Correct or unset it.")
    assert len(message) < 1000


def test_a_misspelt_name_is_refused_with_the_nearest():
    for name, nearest in (
        ("CULTURE_JUDGE_CONCURENCY", "CULTURE_JUDGE_CONCURRENCY"),
        ("CULTURE_JUDGES", "CULTURE_JUDGE"),
        ("CULTURETASKS_DATA", "CULTURE_TASKS_DATA"),
    ):
        assert f"unknown environment variable '{name}'. Did you mean '{nearest}'?" in refused(**{name: "x"})
    said = refused(CULTURE_JUDGE_MAX_TOKENS="9")
    assert ("Did you mean" in said, "such as max_tokens, are part of CULTURE_JUDGE_EXTRA_BODY" in said) == (False, True)


def test_the_process_s_environment_is_read_when_asked_and_variables_of_other_programs_are_left_alone(monkeypatch):
    for name in ("CULTURE", "CULTURE_INFO", "CULTURE_DEFAULT_LANG", "OPENAI_LOG"):
        monkeypatch.setenv(name, "x")
    for judge in ("lexical", "none"):
        monkeypatch.setenv("CULTURE_JUDGE", judge)
        assert Settings.from_environment().judge == judge


def test_secrets_are_in_no_text_of_the_settings():
    settings = read(OPENAI_API_KEY="sk-secret", AZURE_OPENAI_API_KEY="az-secret")
    for text in (repr(settings), str(settings), settings.model_dump_json()):
        assert "secret" not in text
    assert "sk-secret" not in refused(OPENAI_API_KEY="sk-secret", CULTURE_JUDGE_TIMEOUT="x")


def test_the_proxy_is_the_environment_s_for_the_address(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert Settings.proxy_for("https://api.example.org/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.internal")
    assert Settings.proxy_for("https://api.example.org/v1") == "http://proxy:3128"
    monkeypatch.setenv("NO_PROXY", "localhost,.internal,10.0.0.0/8,fd00::/8,not/anet")
    hosts = ("localhost:8000", "llm.internal", "10.9.8.7:8000", "[fd12::1]")
    for address in ("http://api.example.org/v1", *(f"https://{host}/v1" for host in hosts)):
        assert Settings.proxy_for(address) is None
    assert Settings.proxy_for("https://11.0.0.1/v1") == "http://proxy:3128"
    monkeypatch.setenv("ALL_PROXY", "socks5://user:word@proxy:1080")
    with pytest.raises(SettingsError, match="ALL_PROXY names a proxy by socks5://") as caught:
        Settings.proxy_for("http://api.example.org/v1")
    assert "word" not in str(caught.value)


def test_a_settings_file_of_an_earlier_version_is_not_passed_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "culture-tasks.toml").write_text("judge_budget = 5", encoding="utf-8")
    with pytest.raises(SettingsError, match="environment variables alone"):
        Settings.from_environment({})
