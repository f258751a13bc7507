from __future__ import annotations

import pytest

from culture_tasks.errors import SettingsError
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.settings import Settings


def test_openai_by_default():
    address = address_of(Settings(openai_api_key="k", openai_organization="org", openai_project="p"), "gpt-4o")
    assert address.url == "https://api.openai.com/v1/chat/completions"
    assert address.headers == {"Authorization": "Bearer k", "OpenAI-Organization": "org", "OpenAI-Project": "p"}
    assert not address.is_keyless_openai
    assert address_of(Settings(), "gpt-4o").is_keyless_openai


@pytest.mark.parametrize("base", ["http://localhost:8000/v1", "http://localhost:8000/v1/"])
def test_any_compatible_server_needs_no_key(base):
    address = address_of(Settings(openai_base_url=base), "m")
    assert address.url == "http://localhost:8000/v1/chat/completions"
    assert (address.shown, address.headers) == ("http://localhost:8000/v1", {})


def test_azure():
    settings = Settings(
        azure_endpoint="https://mine.openai.azure.com/", azure_api_key="k", openai_api_version="2024-10-21"
    )
    address = address_of(settings, "gpt 4o")
    assert address.url == (
        "https://mine.openai.azure.com/openai/deployments/gpt%204o/chat/completions?api-version=2024-10-21"
    )
    assert address.headers == {"api-key": "k"}
    assert address.shown == "https://mine.openai.azure.com"


def test_azure_needs_a_version():
    with pytest.raises(SettingsError, match="OPENAI_API_VERSION"):
        address_of(Settings(azure_endpoint="https://mine.openai.azure.com"), "m")


def test_a_base_url_goes_before_azure():
    settings = Settings(azure_endpoint="https://mine.openai.azure.com", openai_base_url="http://localhost/v1")
    assert address_of(settings, "m").shown == "http://localhost/v1"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://", "http://[x", "/v1"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(SettingsError, match="not a URL"):
        address_of(Settings(openai_base_url=url), "m")


@pytest.mark.parametrize("field", ["openai_api_key", "openai_organization", "openai_project"])
def test_headers_can_not_be_split(field):
    with pytest.raises(SettingsError, match="line break") as caught:
        address_of(Settings(**{field: "a-secret-or-name\r\nX-Evil: 1"}), "m")
    assert "a-secret-or-name" not in str(caught.value)


def test_the_line_end_of_a_key_file_is_no_part_of_the_key():
    assert address_of(Settings(openai_api_key="k\n"), "m").headers == {"Authorization": "Bearer k"}


def test_proxies_of_the_environment(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    assert Settings.proxy_for("https://api.openai.com/v1") == "http://proxy:3128"
    assert Settings.proxy_for("https://localhost/v1") is None
    assert Settings.proxy_for("http://example.org/v1") is None
