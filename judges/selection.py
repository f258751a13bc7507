"""From ``CULTURE_JUDGE`` to a judge."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from culture_tasks.costs.prices import read_prices
from culture_tasks.errors import WAYS_OUT, JudgeNotConfiguredError, SettingsError, nearest
from culture_tasks.judges.endpoint.budget import forget_budgets
from culture_tasks.judges.judge import Judge, LexicalJudge, NoJudge
from culture_tasks.secret_texts import shown_arguments
from culture_tasks.settings import Settings

BACKENDS = ("openai", "lm_eval", "lexical", "none")


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A judge as the user names it: one of :data:`BACKENDS`, and a model, or ``<backend>,<model args>`` of lm-eval."""

    backend: str
    model: str = field(repr=False)  # empty for the offline judges

    def __str__(self) -> str:
        return f"{self.backend}:{shown_arguments(self.model)}" if self.model else self.backend


def parse_spec(text: str) -> JudgeSpec:
    """Reads a judge's name, such as ``openai:gpt-4o`` or ``lexical``."""
    backend, _, model = text.strip().partition(":")
    if backend not in BACKENDS or bool(model.strip()) != (backend in ("openai", "lm_eval")):
        raise SettingsError(
            f"CULTURE_JUDGE={shown_arguments(text)!r}: no judge has this name.{nearest(backend, BACKENDS)} Expected "
            "openai:<model> (such as openai:gpt-4o), lm_eval:<backend>,<model args>, lexical or none."
        )
    return JudgeSpec(backend, model.strip())


def spec_for(settings: Settings, paper_model: str) -> JudgeSpec:
    """Decides who grades: the judge that the settings name, else the paper's where an endpoint is configured."""
    if settings.judge is not None:
        return parse_spec(settings.judge)
    if settings.has_endpoint:
        return JudgeSpec("openai", paper_model)
    raise JudgeNotConfiguredError(f"judge: no judge is configured. {WAYS_OUT}")


def refuse_in_a_run(settings: Settings) -> None:
    """Refuses a judge that would be loaded into the process of a run, beside the evaluated model."""
    if settings.judge is not None and parse_spec(settings.judge).backend == "lm_eval":
        raise SettingsError(
            "CULTURE_JUDGE=lm_eval:…: a harness's model grades in `rejudge` alone. Set CULTURE_JUDGE=none for the run, "
            "then `culture-tasks rejudge RESULTS --judge lm_eval:…`."
        )


def make_judge(spec: JudgeSpec, settings: Settings) -> Judge:
    """Builds a judge; nothing is asked or loaded yet."""
    read_prices(settings.prices_file)  # an error now, and not at the end of the run
    if spec.backend == "lexical":
        return LexicalJudge()
    if spec.backend == "none":
        return NoJudge()
    if spec.backend == "openai":
        from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge

        return EndpointJudge(spec.model, settings)
    from culture_tasks.judges.local.in_process import InProcessJudge

    return InProcessJudge(spec.model, settings)


_shared: dict[tuple[JudgeSpec, Settings], Judge] = {}
_lock = threading.Lock()


def shared_judge(settings: Settings, paper_model: str) -> Judge:
    """Returns the process's judge for these settings, made on first use.

    All tasks of a run share it, and with it one connection pool, one cache and one bound on requests in flight.
    """
    spec = spec_for(settings, paper_model)
    with _lock:
        if (spec, settings) not in _shared:
            _shared[spec, settings] = make_judge(spec, settings)
        return _shared[spec, settings]


def close_judges() -> None:
    """Closes the process's judges; the next :func:`shared_judge` makes new ones, with a new budget."""
    with _lock:
        judges = list(_shared.values())
        _shared.clear()
    for judge in judges:
        judge.close()
    forget_budgets()
