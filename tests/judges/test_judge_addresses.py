from __future__ import annotations

import pytest

from culture_tasks.errors import SettingsError
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.settings import Settings

AZURE = {"azure_endpoint": "https://mine.openai.azure.com/", "openai_api_version": "2024-10-21"}
ON_AZURE = "https://mine.openai.azure.com/openai/deployments/gpt%204o/chat/completions?api-version=2024-10-21"
LOCAL = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("settings", "url", "shown", "headers"),
    [
        (
            {"openai_api_key": "k\n", "openai_organization": "org", "openai_project": "p"},  # a key file's line end
            "https://api.openai.com/v1/chat/completions",
            "https://api.openai.com/v1",
            {"Authorization": "Bearer k", "OpenAI-Organization": "org", "OpenAI-Project": "p"},
        ),
        ({"openai_base_url": LOCAL}, f"{LOCAL}/chat/completions", LOCAL, {}),
        ({"openai_base_url": f"{LOCAL}/"}, f"{LOCAL}/chat/completions", LOCAL, {}),
        ({**AZURE, "azure_api_key": "k"}, ON_AZURE, "https://mine.openai.azure.com", {"api-key": "k"}),
        ({**AZURE, "openai_base_url": LOCAL}, f"{LOCAL}/chat/completions", LOCAL, {}),  # goes before Azure
    ],
)
def test_an_address_is_that_of_the_settings(settings, url, shown, headers):
    address = address_of(Settings(**settings), "gpt 4o")
    assert (address.url, address.shown, address.headers) == (url, shown, headers)
    assert not address.is_keyless_openai
    assert address_of(Settings(), "gpt-4o").is_keyless_openai


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(({"openai_base_url": url}, "not a URL") for url in ("localhost:8000", "ftp://x/v1", "http://[x", "/v1")),
        ({"azure_endpoint": "https://mine.openai.azure.com"}, "without OPENAI_API_VERSION"),
    ],
)
def test_an_address_that_is_none_is_refused(settings, said):
    with pytest.raises(SettingsError, match=said):
        address_of(Settings(**settings), "m")


@pytest.mark.parametrize("field", ["openai_api_key", "openai_organization", "openai_project"])
def test_headers_can_not_be_split(field):
    with pytest.raises(SettingsError, match="line break") as caught:
        address_of(Settings(**{field: "a-secret-or-name\r\nX-Evil: 1"}), "m")
    assert "a-secret-or-name" not in str(caught.value)
