"""The papers' table of one model: which fits and evaluations it needs, what they cost, and running them.

Each fit and each evaluation is a process, so that its memory is given back. What is finished is skipped: a fit whose
state is of this model, these data and options, and an evaluation whose record says the same of its result file. A
killed fit continues from its checkpoint and a killed evaluation from the answers that it has stored, since the same
command runs again.

Several processes may fill one folder with different methods, such as one per GPU: a row that another process is
working on is waited for.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion import methods
from culture_tasks.insertion.core import state, tensor_files
from culture_tasks.insertion.core.adapter import IMAGE_LIMITS, ModelOptions, load_encoding
from culture_tasks.insertion.core.edit_scopes import LEXICAL
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.training_data import TrainingData
from culture_tasks.insertion.estimates import (
    EVALUATED,
    CaseShape,
    Models,
    ModelShape,
    PromptSize,
    Requests,
    RowEstimate,
    RowEstimator,
    device_at_hand,
)
from culture_tasks.insertion.model_files import ModelLocation, locate, without_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_log = logging.getLogger(__name__)

ALL = "all"
"""Means the methods of the papers' tables."""

CULTURE_TASKS = (sys.executable, "-m", "culture_tasks.cli.main")

_MEASURED = 8  # requests whose tokens are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """A table's model and settings; None means all documents, all training cases, and no backend.

    ``out`` is the folder with ``states/``, ``results/``, ``logs/`` and ``report/``. ``batch_size`` are requests that
    are answered together; ``auto`` lets evaluations begin with 32, and fits with 16. The ``backend`` generates for the
    methods that leave weights alone. ``options`` are those of each method, and ``judge`` is a hash of its choice.
    """

    out: Path
    pretrained: str
    model: ModelOptions
    tasks: tuple[str, ...]
    limit: int | None = None
    fit_limit: int | None = None
    batch_size: str = "auto"
    backend: str | None = None
    backend_arguments: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    judge: str = ""

    def __post_init__(self) -> None:
        """Refuses a value that a list of model arguments can't have."""
        for value in (self.pretrained, str(self.out), *self.backend_arguments.values()):
            if "," in value:
                raise SettingsError(
                    f"insertion: {value!r} has a comma, which lmms-eval's --model_args can't. Rename it."
                )

    @property
    def loading(self) -> dict[str, Any]:
        """How the model is loaded, by the names that commands and model arguments share; None for a default."""
        values = self.model.model_dump(exclude={*IMAGE_LIMITS}, exclude_defaults=True)
        return {name: values.get(name) for name in ModelOptions.model_fields if name not in IMAGE_LIMITS}


class MethodRow:
    """One method's fit and evaluation: its options, the folders of its state and results, and its processes' log."""

    def __init__(self, options: TableOptions, method: type[InsertionMethod]) -> None:
        self.options, self.method, self.name = options, method, method.name
        self.config = method.read_config(options.options.get(self.name, {}))
        self.backend = None if method.edits_weights else options.backend
        self.state = options.out / "states" / self.name
        self.results = options.out / "results" / self.name
        self.log = options.out / "logs" / f"{self.name}.log"
        self._record = self.log.with_suffix(".json")

    @property
    def settings(self) -> dict[str, Any]:
        """All that its numbers depend on, besides its state and the judge."""
        options = self.options
        return {
            "pretrained": options.pretrained,
            "tasks": ",".join(options.tasks),
            "limit": options.limit,
            "fit_limit": options.fit_limit if self.method.needs_state else None,
            "backend": self.backend,
            "backend_arguments": dict(options.backend_arguments) if self.backend else {},
            "config": self.config.model_dump(mode="json"),
            "images": options.model.images,
            **{name: value for name, value in options.loading.items() if "device" not in name},
        }

    def check(self) -> None:
        """Refuses a folder that holds this row with other settings, or graded by another judge."""
        recorded = self._read_record()
        if recorded and recorded.get("judge") != self.options.judge:
            raise SettingsError(
                f"{self.options.out}: the row {self.name} was graded by another judge. `culture-tasks rejudge "
                f"{self.options.out / 'results'} --judge …` grades all rows again; or set CULTURE_JUDGE as it was."
            )
        different = state.differences(recorded.get("settings", self.settings), self.settings)
        if different:
            raise SettingsError(
                f"{self.options.out}: holds the row {self.name} with other settings ({different}). Name another "
                f"--output, or delete {self._record} to evaluate again."
            )

    def is_fitted(self, data: TrainingData) -> bool:
        """Whether the state is of this method, its options, the model's name and the data; more is checked later."""
        if not self.method.needs_state:
            return True
        if not state.exists(self.state):
            return False
        present, _ = state.read(self.state)
        config, version = self.config.model_dump(mode="json"), self.method.answers_version
        expected = (self.name, version, config, data.facts, self.options.pretrained)
        return (present.method, present.version, present.config, present.data, present.model) == expected

    def is_evaluated(self) -> bool:
        """Whether the record says that the result file is of these settings and this state."""
        recorded = self._read_record()
        return {**recorded, **self._basis()} == recorded and (self.options.out / str(recorded.get("results"))).is_file()

    @property
    def fit_command(self) -> list[str]:
        """The command that fits it."""
        options = self.options
        flags: dict[str, Any] = {
            "method": self.name,
            "model": options.pretrained,
            "output": self.state,
            "features": options.out / "states" / "features.sqlite3",
            "batch-size": 16 if options.batch_size == "auto" else options.batch_size,
            "limit": options.fit_limit,
            **options.loading,
            **options.model.images,
        }
        command = [*CULTURE_TASKS, "insertion", "fit"]
        for name, value in flags.items():
            flag = f"--{name.replace('_', '-')}"
            if value is not None:
                command += [flag] if value is True else [flag, str(value)]
        method_options = options.options.get(self.name, {})
        return command + [text for name, value in method_options.items() for text in ("--set", f"{name}={value}")]

    @property
    def evaluation_command(self) -> list[str]:
        """The command that evaluates it."""
        options = self.options
        arguments: dict[str, Any] = {"pretrained": options.pretrained, "method": self.name}
        arguments |= {**options.loading, **options.model.images}
        arguments |= {"state": self.state} if self.method.needs_state else options.options.get(self.name, {})
        if self.backend is not None:
            arguments |= {"backend": self.backend, **options.backend_arguments}
        listed = ",".join(f"{name}={value}" for name, value in arguments.items() if value is not None)
        command = [sys.executable, "-m", "lmms_eval", "--model", "knowledge_insertion", "--log_samples"]
        command += ["--model_args", listed, "--tasks", ",".join(options.tasks), "--batch_size", options.batch_size]
        command += ["--output_path", str(self.results)]
        return command + ([] if options.limit is None else ["--limit", str(options.limit)])

    def run(self, data: TrainingData) -> None:
        """Fits and evaluates it, as far as that isn't done."""
        with self._alone() as log:
            if not self.is_fitted(data):
                self._process(self.fit_command, log)
                if not self.is_fitted(data):
                    raise CultureTasksError(f"{self.name}: the fit ended without its state. See {self.log}")
            if self.is_evaluated():
                return
            shutil.rmtree(self.results, ignore_errors=True)  # of a run that was killed; its answers are elsewhere
            self._process(self.evaluation_command, log)
            files = sorted(self.results.rglob("*_results.json"))
            if not files:  # lmms-eval ends with status 0 after an error
                raise CultureTasksError(f"{self.name}: the evaluation ended without results. See {self.log}")
            place = str(files[-1].relative_to(self.options.out))
            record = self._basis() | {"results": place, "judge": self.options.judge}
            with tensor_files.replaced(self._record) as partial:
                partial.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")

    def _read_record(self) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(self._record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content

    def _basis(self) -> dict[str, Any]:
        fingerprint = state.read(self.state)[0].fingerprint if self.method.needs_state else None
        return {"settings": self.settings, "state": fingerprint}

    @contextmanager
    def _alone(self) -> Iterator[IO[bytes]]:
        """Opens the log, whose lock its processes inherit: those of a killed table hold it until they end too."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            if os.name == "posix":
                import fcntl

                try:
                    fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    _log.warning("insertion: another process works on the row %s; waiting for its end", self.name)
                    fcntl.flock(log, fcntl.LOCK_EX)
            yield log

    def _process(self, command: Sequence[str], log: IO[bytes]) -> None:
        """Runs a command, whose output is shown and logged."""
        command_line = f"\n$ {' '.join(command)}\n"
        log.write(command_line.encode())
        log.flush()
        sys.stderr.write(command_line)
        inherited = (log.fileno(),) if os.name == "posix" else ()
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "pass_fds": inherited}
        with subprocess.Popen(command, **streams) as process:  # noqa: S603 - this interpreter
            assert process.stdout is not None
            try:
                while chunk := os.read(process.stdout.fileno(), 65_536):
                    log.write(chunk)
                    log.flush()
                    sys.stderr.write(chunk.decode(errors="replace"))
                    sys.stderr.flush()
            except BaseException:
                process.terminate()
                raise
        if process.returncode:
            raise CultureTasksError(f"{self.name}: ended with status {process.returncode}. See {self.log}")


def rows_of(options: TableOptions, names: Sequence[str]) -> list[MethodRow]:
    """Returns the rows of methods, checked; ``all`` names those of the papers' tables."""
    selection = list(
        dict.fromkeys(method for name in names for method in (methods.paper_rows() if name == ALL else (name,)))
    )
    for name in options.options:
        if name not in selection:
            hint = f"The table's are {', '.join(selection)}."
            raise SettingsError(f"insertion: --set {name}.…: {name!r} isn't a row.{nearest(name, selection)} {hint}")
    rows = [MethodRow(options, method_class(name)) for name in selection]
    for row in rows:
        row.check()
    return rows


class TableModels(NamedTuple):
    """Where each model of a table is, by name, and the models of each row without weights, by the row's name."""

    located: Mapping[str, ModelLocation]
    of_rows: Mapping[str, Models]


def find_models(options: TableOptions, rows: Iterable[MethodRow]) -> TableModels:
    """Looks for all models of a table before any is loaded."""
    model, problems = options.model, dict[str, None]()
    located: dict[str, ModelLocation] = {}
    shapes: dict[str, Any] = {}
    try:
        located[options.pretrained] = locate(options.pretrained, model.revision)
        shapes[EVALUATED] = without_weights(
            options.pretrained, model.revision, model.dtype, trust_remote_code=model.trust_remote_code
        )
    except SettingsError as error:
        problems[str(error)] = None
    evaluated = shapes.get(EVALUATED)
    architecture = "" if evaluated is None else str(evaluated.config.model_type)
    of_rows = {row.name: {EVALUATED: evaluated} for row in rows}
    for row in rows:
        for option, name in row.method.models_of(row.config, architecture).items():
            if name == LEXICAL or (name is None and not architecture):
                continue  # words are counted without a model; the paper's choice depends on the model that is missing
            try:
                if name is None:
                    raise SettingsError(f"{row.name}: the paper names no {option} for this model.")
                if name not in located:
                    located[name] = locate(name)
                if evaluated is not None and name not in shapes:
                    shapes[name] = without_weights(name, dtype=str(evaluated.dtype).removeprefix("torch."))
                of_rows[row.name][option] = shapes.get(name)
            except SettingsError as error:
                problems[f"{error} --set {row.name}.{option}=MODEL names another."] = None
    if problems:
        raise SettingsError("\n  ".join(["insertion: some models of the table can't be used.", *problems]))
    return TableModels(located, of_rows)


def row_estimator(
    options: TableOptions,
    model: PreTrainedModel,
    data: TrainingData,
    documents: Iterable[Mapping[str, Any]],
    new_tokens: int,
) -> RowEstimator:
    """Returns the estimator for training cases and the requests of documents, whose answers have so many tokens."""
    queries = list(dict.fromkeys(query for case in data.cases for query in case.queries()))
    some = queries[:: max(1, len(queries) // _MEASURED)][:_MEASURED]
    return RowEstimator(
        device=device_at_hand(),
        prompt=PromptSize.of(load_encoding(options.pretrained, options.model), model, some),
        requests=Requests.of(documents, new_tokens),
        cases=CaseShape(
            count=len(data.cases),
            requests=len(queries),
            generality=mean(len(case.generality) for case in data.cases),
            locality=mean(len(case.locality) for case in data.cases),
        ),
        batch=32 if options.batch_size == "auto" else int(options.batch_size),
    )


def estimate(
    method: type[InsertionMethod],
    config: MethodConfig,
    models: Models,
    estimator: RowEstimator,
    *,
    backend: bool = False,
    stored: set[str],
) -> RowEstimate | None:
    """Estimates a method's row from models without weights; None where the method doesn't say what it computes.

    ``stored`` names what earlier rows leave for later ones, and gets what this row leaves.
    """
    work = method.work(config, models, estimator.cases)
    if work is None:
        return None
    shapes = {name: ModelShape.of(model) for name, model in models.items() if model.can_generate()}
    encoders = [model for name, model in models.items() if name not in shapes]
    plain, fit = f"plain answers of a backend: {backend}", work.shared_fit or method.name
    row = estimator.row(
        work,
        shapes,
        inserts=method.inserts,
        beside_gib=sum(model.num_parameters() * model.dtype.itemsize for model in encoders) / 2**30,
        backend=backend,
        plain_is_stored=plain in stored,
        fit_is_stored=fit in stored,
    )
    stored |= {plain, fit}
    return row
