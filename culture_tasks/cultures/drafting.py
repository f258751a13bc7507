"""Has a model fill in a step of a project: drafts for people to rewrite, or responses for them to rate."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from culture_tasks.benchmarks.culture_forms import MODEL, Ask, Entry, SheetRow
from culture_tasks.benchmarks.interface import Picture
from culture_tasks.cultures.project import Project, problems_with
from culture_tasks.errors import DataError, JudgeError, SettingsError
from culture_tasks.judges.completions import ChatRequest, Problem
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.judges.endpoint.asker import Asker
from culture_tasks.judges.endpoint.budget import USED_UP, shared_budget
from culture_tasks.judges.endpoint.client import Client
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.rubric.rubrics import Message
from culture_tasks.settings import Settings
from culture_tasks.text import storable, without_reasoning

_OPENAI = "openai:"


class DraftResult(NamedTuple):
    """How many rows a model filled in now, and before, and which ones it didn't, each with the reason."""

    saved: int
    before: int
    failed: Sequence[tuple[str, str]]


def draft(
    project: Project,
    step_name: str,
    model: str,
    settings: Settings,
    *,
    most: int | None = None,
    progress: Callable[[], Any],
) -> DraftResult:
    """Asks a model for up to ``most`` rows of a step that it hasn't filled in yet, and saves each reply as it comes.

    Budget, concurrency, patience and timeout are those of judges.

    Raises:
        DataError: If the step isn't one for models.
        SettingsError: If the model isn't named as one of an endpoint.
        JudgeError: If the endpoint refuses the model or the key.
    """
    step = project.step(step_name)
    if step.ask is None:
        able = ", ".join(name for name, candidate in project.steps.items() if candidate.ask is not None) or "none"
        raise DataError(f"{project.folder}: the step {step_name!r} is done by people alone. Steps for models: {able}.")
    name = model.removeprefix(_OPENAI)
    if not model.startswith(_OPENAI) or not name:
        raise SettingsError(f"--model {model!r}: Expected openai:NAME, such as openai:gpt-4o.")
    state = project.state(settings.data_folder)
    person = f"{MODEL}{name}"
    rows = step.rows(state)
    before = {
        row.name for row in rows if person in {entry.person for entry in state.model_entries(step.name, row.name)}
    }
    rows = [row for row in rows if row.name not in before][:most]
    ask = step.ask

    def save(row: SheetRow, reply: str) -> str:
        """Saves a reply; returns why it can't be, or nothing."""
        try:
            values = dict(ask.read(without_reasoning(reply)))
        except ValueError as error:
            return f"the reply can't be read: {error}"
        if problems := problems_with(step.columns, values):
            return "; ".join(problems)
        project.add([Entry(step=step.name, row=row.name, person=person, values=values)], f"{model}, {ask.version}")
        return ""

    failed = asyncio.run(_ask_all(project.folder, rows, name, ask, settings, save, progress)) if rows else []
    return DraftResult(len(rows) - len(failed), len(before), failed)


async def _ask_all(
    folder: Path,
    rows: Sequence[SheetRow],
    model: str,
    ask: Ask,
    settings: Settings,
    save: Callable[[SheetRow, str], str],
    progress: Callable[[], Any],
) -> list[tuple[str, str]]:
    address = address_of(settings, model)
    asker = Asker(
        lambda: Client(address, settings.judge_timeout, settings.proxy_for(address.url)),
        name=f"endpoint at {address.name}",
        concurrency=settings.judge_concurrency,
        patience=Patience(settings.judge_patience),
        budget=shared_budget(settings),
    )
    decoding = ask.decoding
    top_p = {} if decoding.top_p is None else {"top_p": decoding.top_p}
    sampling = {"temperature": decoding.temperature, **top_p, "max_tokens": decoding.max_tokens}
    failed: list[tuple[str, str]] = []
    waiting = list(reversed(rows))

    async def work() -> None:
        while waiting:
            row = waiting.pop()
            request = ChatRequest(address.name, model, _messages(folder, row, ask), sampling)
            result = (await asker.ask(request)).reply
            if isinstance(result, Problem):
                if result.says_unknown_model or result.status in (401, 403) or result.code == USED_UP:
                    raise JudgeError(f"{address.name}: {result.message}. What was drafted is saved.")
                reason = result.message
            else:
                reason = "the reply was cut off" if result.is_cut_off else save(row, storable(result.text))
            if reason:
                failed.append((row.name, reason))
            progress()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(rows), settings.judge_concurrency)):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        await asker.close()
    return failed


def _messages(folder: Path, row: SheetRow, ask: Ask) -> list[Message]:
    prompt = ask.prompt(row)
    parts: list[dict[str, Any]] = []
    for part in prompt.parts:
        if isinstance(part, Picture):
            parts.append({"type": "image_url", "image_url": {"url": _data_uri(folder / "images" / row.image)}})
        else:
            parts.append({"type": "text", "text": part})
    content: Any = parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return cast("list[Message]", [*system, {"role": "user", "content": content}])


def _data_uri(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}).") from None
    kind = mimetypes.guess_type(path.name)[0] or "image/png"
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
