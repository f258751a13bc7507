"""Scores that others report in logs of Every Eval Ever (https://github.com/evaleval/every_eval_ever).

Only the entries that a report shows are read and checked; a log of any version may have others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from culture_tasks.errors import DataError
from culture_tasks.results.samples import damage, parse_json
from culture_tasks.settings import with_home

_Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=2**53), BeforeValidator(lambda count: count or 0)]
_Text = Annotated[str, BeforeValidator(lambda value: str(value or ""))]
_Details = dict[str, Any]


class _LogPart(BaseModel):
    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """Leaves entries without a value to their defaults."""
        return {name: value for name, value in data.items() if value is not None} if isinstance(data, dict) else data


def _optional(*path: str, default: Any = None) -> Any:
    """Returns the field of an entry that may be missing or null anywhere on its path."""
    return Field(default=default, validation_alias=AliasPath(*path))


class _Judge(_LogPart):
    model: str = Field(validation_alias=AliasPath("model_info", "id"))
    prompts: _Text = _optional("additional_details", "prompt_sha256", default="")


class ReportedMetric(_LogPart):
    """What a score is: its names, its scale, and who judged."""

    metric_id: str = ""
    metric_name: str = ""
    metric_unit: str = ""
    evaluation_description: str = ""
    lower_is_better: bool
    min_score: float | None = None
    max_score: float | None = None
    judges: tuple[_Judge, ...] | None = _optional("llm_scoring", "judges")
    additional_details: _Details = {}


class _Interval(_LogPart):
    lower: _Finite
    upper: _Finite
    confidence_level: float | None = None


class ReportedScore(_LogPart):
    """One score of a log.

    Attributes:
        n: Number of samples behind it; 0 where the log doesn't say.
        prompts: The hashes of the model's prompts, where a log of ours says them.
    """

    name: str = Field(validation_alias="evaluation_name")
    metric: ReportedMetric = Field(validation_alias="metric_config")
    score: _Finite = Field(validation_alias=AliasPath("score_details", "score"))
    n: _Count = _optional("score_details", "uncertainty", "num_samples", default=0)
    standard_error: Annotated[_Finite, Field(ge=0.0)] | None = _optional(
        "score_details", "uncertainty", "standard_error", "value"
    )
    confidence_interval: _Interval | None = _optional("score_details", "uncertainty", "confidence_interval")
    share_scored: Any = _optional("score_details", "details", "coverage")
    prompts: _Text = _optional("generation_config", "additional_details", "prompts_sha256", default="")

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval, else that of its standard error; NaN without either, or where it isn't an interval."""
        interval, error = self.confidence_interval, self.standard_error
        reach = math.nan if error is None else NormalDist().inv_cdf(0.975) * error
        low, high = self.score - reach, self.score + reach
        if interval is not None and interval.confidence_level == 0.95:
            low, high = interval.lower, interval.upper
        return (low, high) if -math.inf < low <= high < math.inf else (math.nan, math.nan)

    @property
    def coverage(self) -> float | None:
        """Share of verdicts that were scored, where a log of ours says it."""
        try:
            coverage = float(self.share_scored)
        except (TypeError, ValueError, OverflowError):
            return None
        return coverage if 0.0 <= coverage <= 1.0 else None

    @property
    def judges(self) -> dict[str, str]:
        """The judges' models, each with the hashes of its prompts where a log of ours says them."""
        return {judge.model: judge.prompts for judge in self.metric.judges or ()}


class EvalLog(_LogPart):
    """A log: a model's scores, as an organization reports them."""

    evaluation_id: str
    reporter: str = Field(validation_alias=AliasPath("source_metadata", "source_organization_name"))
    harness: str = Field(validation_alias=AliasPath("eval_library", "name"))
    harness_version: str | None = _optional("eval_library", "version")
    model: str = Field(validation_alias=AliasPath("model_info", "id"))
    scores: tuple[ReportedScore, ...] = Field(validation_alias="evaluation_results")


def read_eval_logs(paths: Sequence[str]) -> dict[str, EvalLog]:
    """Reads logs, also in folders at any depth, whose other JSON files are passed over.

    Returns:
        The logs by path; of several with the same ``evaluation_id``, the first.

    Raises:
        DataError: If a file isn't a log or has other entries than a log, or if there is none.
    """
    logs: dict[str, EvalLog] = {}
    ids: set[str] = set()
    for name in paths:
        path, count = with_home(name), len(logs)
        for file in sorted(filter(Path.is_file, path.rglob("*.json"))) if path.is_dir() else [path]:
            log = _log(file, is_named=file == path)
            if log is not None and log.evaluation_id not in ids:
                ids.add(log.evaluation_id)
                logs[str(file)] = log
        if path.is_dir() and len(logs) == count:
            raise DataError(
                f"{path}: no log of Every Eval Ever that isn't named already. Expected JSON files with schema_version "
                "and evaluation_results."
            )
    return logs


def _log(path: Path, *, is_named: bool) -> EvalLog | None:
    try:
        content = parse_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}). Name a log of Every Eval Ever.") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}). Name a log of Every Eval Ever.") from None
    if not (isinstance(content, dict) and "schema_version" in content and "evaluation_results" in content):
        if is_named:
            raise DataError(
                f"{path}: no log of Every Eval Ever. Expected an object with schema_version and evaluation_results, "
                f"found {str(content)[:80]}."
            )
        return None
    try:
        return EvalLog.model_validate(content)
    except ValidationError as error:
        raise DataError(f"{path}, {damage(error)}. Check it with `every_eval_ever validate`.") from None
