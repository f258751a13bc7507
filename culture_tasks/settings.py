"""The one place where the environment is read: when asked, by :meth:`Settings.from_environment`, and passed on.

A misspelt ``CULTURE_…`` variable is an error, since it would otherwise be silently ignored.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_core import from_json

from culture_tasks.errors import SettingsError

_CULTURES = "CULTURE_TASKS_CULTURES"
_COMMON = re.compile("^CULTURE_?((JUDGE|TASKS)_)?")  # what most names begin with
_HUB_NAME, _REVISION = r"\w[\w.-]*(?:/\w[\w.-]*)?", r"\w[\w.-]*(?:/\w[\w.-]*)*"
_NOT_IN_EXTRA_BODY = ("model", "messages", "stream", "stream_options", "n", "max_completion_tokens")


class Settings(BaseModel):
    """The user's settings, from environment variables.

    Attributes:
        judge: Who grades: ``openai:<model>``, ``lm_eval:<backend>,<model args>``, ``lexical`` or ``none``;
            None means the judge of the benchmark's paper, if a key or a base URL is set.
        judge_concurrency: Maximum number of requests in flight to a judge's endpoint.
        judge_cache: File of the verdict cache, or ``off``; None means the user's cache folder.
        judge_min_coverage: A judged score is reported as NaN if a smaller share of its verdicts was scored.
        judge_timeout: Seconds until a request to a judge times out.
        judge_patience: Seconds to wait for a judge's endpoint that doesn't answer.
        judge_delimiters: Whether the texts to grade are enclosed in tags with a secret code that no text can contain.
        judge_form: Form that the judge's endpoint holds replies to, the reasons before the rating: ``json_schema`` (by
            ``response_format``) or ``regex`` (by vLLM's ``structured_outputs``); ``free`` leaves it to the prompt.
        judge_extra_body: A JSON object with parameters for the judge's requests, shown in the results, such as
            ``{"max_tokens": 4096, "temperature": 0.5, "reasoning_effort": "low"}``; ``null`` drops one of the rubric's.
        judge_budget: What a command may spend on the judge: money, such as ``5``, in the currency of the prices, or
            tokens, such as ``2000000 tokens``; None means anything.
        judge_prices: File of prices; None means the list prices that are part of this package.
        subset: Evaluate a designed draw of each task's documents: ``400`` of them, or ``400:7`` with another seed than
            0; None means all documents.
        data: Folder of local data, which is used before the Hub.
        cultures: Folders of own cultures, each with a ``culture.toml``, with commas between them.
        revisions: Data sets of the Hub, each with the branch, tag or commit to read, as ``owner/name=revision`` with
            a comma between several; ``main`` for all others. The commit that was read is recorded in the results.
        submissions: Folder for prediction files of benchmarks whose answers are withheld; None means ``submissions`` in
            lmms-eval's output folder, or in the current one.
        extra_columns: Whether to ``refuse`` local files with unknown columns, or to ``allow`` and ignore the columns.
        image_pixels: Largest number of pixels of an image; a larger one is refused before it is decoded.
        languages: Languages that the evaluated model supports officially; None means all.
        openai_api_key: Key for the judge's endpoint.
        openai_base_url: The judge's endpoint, if it isn't OpenAI's own.
        azure_endpoint: Azure OpenAI resource to use as the judge's endpoint.
        azure_api_key: Key of that resource.
        openai_api_version: API version, needed by Azure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)

    judge: str | None = Field(default=None, validation_alias="CULTURE_JUDGE", repr=False)
    judge_concurrency: int = Field(default=64, validation_alias="CULTURE_JUDGE_CONCURRENCY", ge=1, le=10_000)
    judge_cache: str | None = Field(default=None, validation_alias="CULTURE_JUDGE_CACHE")
    judge_min_coverage: float = Field(default=0.95, validation_alias="CULTURE_JUDGE_MIN_COVERAGE", ge=0.0, le=1.0)
    judge_timeout: float = Field(default=120.0, validation_alias="CULTURE_JUDGE_TIMEOUT", gt=0.0, allow_inf_nan=False)
    judge_patience: float = Field(default=600.0, validation_alias="CULTURE_JUDGE_PATIENCE", ge=0.0, allow_inf_nan=False)
    judge_delimiters: Literal["on", "off"] = Field(default="on", validation_alias="CULTURE_JUDGE_DELIMITERS")
    judge_form: Literal["free", "json_schema", "regex"] = Field(default="free", validation_alias="CULTURE_JUDGE_FORM")
    judge_extra_body: str | None = Field(default=None, validation_alias="CULTURE_JUDGE_EXTRA_BODY")
    judge_budget: str | None = Field(default=None, validation_alias="CULTURE_JUDGE_BUDGET", max_length=40)
    judge_prices: Path | None = Field(default=None, validation_alias="CULTURE_JUDGE_PRICES")
    subset: tuple[int, int] | None = Field(default=None, validation_alias="CULTURE_SUBSET")
    data: Path | None = Field(default=None, validation_alias="CULTURE_TASKS_DATA")
    cultures: str | None = Field(default=None, validation_alias=_CULTURES)
    revisions: tuple[tuple[str, str], ...] = Field(default=(), validation_alias="CULTURE_TASKS_REVISION")
    submissions: Path | None = Field(default=None, validation_alias="CULTURE_TASKS_SUBMISSIONS")
    extra_columns: Literal["refuse", "allow"] = Field(default="refuse", validation_alias="CULTURE_TASKS_EXTRA_COLUMNS")
    # where Pillow warns, and where it refuses
    image_pixels: int = Field(default=89_478_485, validation_alias="CULTURE_TASKS_IMAGE_PIXELS", ge=1, le=178_956_970)
    languages: tuple[str, ...] | None = Field(default=None, validation_alias="CULTURE_TASKS_LANGUAGES")
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL", repr=False)
    azure_endpoint: str | None = Field(default=None, validation_alias="AZURE_OPENAI_ENDPOINT", repr=False)
    azure_api_key: SecretStr | None = Field(default=None, validation_alias="AZURE_OPENAI_API_KEY")
    openai_api_version: str | None = Field(default=None, validation_alias="OPENAI_API_VERSION")

    @field_validator("revisions", mode="before")
    @classmethod
    def _is_a_list_of_pairs(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [[part.strip() for part in pair.split("=")] for pair in value.split(",") if pair.strip()]
        # A revision is a file's name in the cache of the Hub, so ".." in it could lead out of that.
        if not all(re.fullmatch(rf"{_HUB_NAME}={_REVISION}", "=".join(pair)) for pair in pairs):
            raise ValueError("it is not owner/name=revision, or several of these with a comma between them")
        if len(dict(pairs)) < len(pairs):
            raise ValueError("it names a data set twice")
        return pairs

    @field_validator("subset", mode="before")
    @classmethod
    def _is_a_number_with_a_seed(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        match = re.fullmatch(r"([1-9]\d{0,8})(?::(\d{1,9}))?", value)
        if not match:
            raise ValueError("it is not NUMBER or NUMBER:SEED, such as 400 or 400:7, with a number from 1 on")
        return int(match[1]), int(match[2] or 0)

    @field_validator("languages", mode="before")
    @classmethod
    def _is_a_list(cls, value: object) -> object:
        return tuple(code.strip() for code in value.split(",") if code.strip()) if isinstance(value, str) else value

    @field_validator("judge_extra_body")
    @classmethod
    def _is_an_object_of_parameters(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            parameters = from_json(text, allow_inf_nan=False)
        except ValueError:
            parameters = None
        if not isinstance(parameters, dict):
            raise ValueError('it is not a JSON object, such as {"top_p": 0.9}')
        if fixed := [name for name in _NOT_IN_EXTRA_BODY if name in parameters]:
            raise ValueError(f"it may not set {', '.join(fixed)}, which is fixed (the limit of tokens is max_tokens)")
        limit = parameters.get("max_tokens")
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise ValueError(f"max_tokens is {limit!r}; expected a whole number of at least 1, or null")
        temperature = parameters.get("temperature")
        if temperature is not None and (not isinstance(temperature, int | float) or temperature < 0.0):
            raise ValueError(f"temperature is {temperature!r}; expected a number of at least 0, or null")
        return json.dumps(parameters, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Reads the settings from environment variables, or others in their place; an empty one counts as unset.

        Raises:
            SettingsError: If a variable has a value that is not allowed, or a name is unknown.
        """
        environ = os.environ if environment is None else environment
        if Path("culture-tasks.toml").exists():
            raise SettingsError(
                "culture-tasks.toml: settings are read from environment variables alone. Set the variables that "
                "docs/settings.md names (judge = … is CULTURE_JUDGE), and remove the file."
            )
        names = [name for name in variables() if name.startswith("CULTURE_")]
        if unknown := sorted(name for name in environ if name not in names and _is_meant_for_us(name, names)):
            raise SettingsError(
                f"settings: unknown environment variable {unknown[0]!r}.{_nearest(unknown[0], names)} Expected one of "
                f"{', '.join(names)}. Correct or unset it. Parameters of the judge's requests, such as max_tokens, are "
                "part of CULTURE_JUDGE_EXTRA_BODY."
            )
        try:
            return cls.model_validate({name: value for name in variables() if (value := _value(environ, name))})
        except ValidationError as error:
            problems = []
            for problem in error.errors():
                shown = repr(problem["input"])
                shown = shown if len(shown) <= 200 else f"{shown[:200]}…"
                problems.append(f"{problem['loc'][0]}={shown}: {problem['msg'].removeprefix('Value error, ')}")
        raise SettingsError(f"settings: {'; '.join(problems)}. Correct or unset it.")

    @property
    def judge_parameters(self) -> Mapping[str, Any]:
        """Sampling parameters of the judge that the user sets; None drops one of the rubric's."""
        return {**json.loads(self.judge_extra_body or "{}")}

    @property
    def cache_file(self) -> Path | None:
        """File of the verdict cache, or None where it is off."""
        if self.judge_cache == "off":
            return None
        if self.judge_cache is not None:
            return with_home(self.judge_cache)
        return user_cache_folder() / "verdicts.sqlite3"

    @property
    def prices_file(self) -> Path | None:
        """File of prices with ``~`` resolved, or None for the shipped one."""
        return None if self.judge_prices is None else with_home(self.judge_prices)

    @property
    def data_folder(self) -> Path | None:
        """Folder of local data with ``~`` resolved, or None."""
        return None if self.data is None else with_home(self.data)

    @staticmethod
    def proxy_for(url: str) -> str | None:
        """Returns the proxy that the usual variables (``HTTPS_PROXY``, ``NO_PROXY``, …) name for a URL, or None."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if proxy_bypass(host) or _is_in_network(host, getproxies().get("no", "")):
            return None
        proxies = Settings.proxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if proxy is not None and (scheme := proxy.partition("://")[0].lower()) not in ("http", "https"):
            name = f"{parts.scheme}_proxy" if parts.scheme in proxies else "all_proxy"
            raise SettingsError(
                f"{name.upper()} names a proxy by {scheme}://, through which a judge can't be asked. Set "
                f"{parts.scheme.upper()}_PROXY to an HTTP proxy, or NO_PROXY to {host} to ask it directly."
            )
        return proxy

    @staticmethod
    def proxies() -> Mapping[str, str]:
        """Returns the proxies that the usual variables name, by the scheme of the URLs that they are for."""
        proxies = {scheme: proxy for scheme, proxy in getproxies().items() if scheme != "no"}
        return {scheme: proxy if "://" in proxy else f"http://{proxy}" for scheme, proxy in proxies.items()}

    @property
    def has_endpoint(self) -> bool:
        """Whether a key or an address of a judge's endpoint is set."""
        return any((self.openai_api_key, self.openai_base_url, self.azure_endpoint, self.azure_api_key))


def _is_in_network(host: str, no_proxy: str) -> bool:
    """Whether a host is an address in one of the networks of ``NO_PROXY``, such as 10.0.0.0/8."""
    for part in no_proxy.split(","):
        with suppress(ValueError):
            if "/" in part and ip_address(host) in ip_network(part.strip(), strict=False):
                return True
    return False


def with_home(path: str | Path) -> Path:
    """Returns a path with ``~`` resolved, as it is where there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises a RuntimeError there


def culture_folders() -> list[Path]:
    """Returns the folders of cultures that the user names.

    A harness needs the list of benchmarks at every start, so the other settings aren't checked here.
    """
    return [with_home(part.strip()) for part in _value(os.environ, _CULTURES).split(",") if part.strip()]


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()


def user_cache_folder() -> Path:
    """Returns the folder of this package in the user's cache folder."""
    return platformdirs.user_cache_path("culture-tasks")


def variables() -> Mapping[str, str]:
    """Returns the environment variables that are read, each with the field that it sets."""
    return {str(field.validation_alias): name for name, field in Settings.model_fields.items()}


def _is_meant_for_us(name: str, names: Sequence[str]) -> bool:
    """Whether a variable begins like ours or is a near miss; another program's ``CULTURE_…`` is left alone."""
    if name.startswith(("CULTURE_JUDGE", "CULTURE_TASKS")):
        return True
    return name.startswith("CULTURE") and bool(difflib.get_close_matches(name, names, n=1, cutoff=0.85))


def _nearest(name: str, names: Sequence[str]) -> str:
    """Returns a hint with the nearest of the names, by what follows the words that most of them begin with."""
    tails = {_COMMON.sub("", known): known for known in names}
    close = difflib.get_close_matches(_COMMON.sub("", name), tails, n=1)
    return f" Did you mean {tails[close[0]]!r}?" if close else ""
