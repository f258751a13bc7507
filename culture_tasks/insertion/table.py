"""The papers' table of one model: which fits and evaluations it needs, what they cost, and running them.

Each fit and each evaluation is a process, so that its memory is given back. What is finished is skipped: a fit whose
state is of this model, these data and options, and an evaluation whose record says the same of its result file. A
killed fit continues from its checkpoint and a killed evaluation from the answers that it has stored, since the same
command runs again. A row that fails doesn't stop the others.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import IO, TYPE_CHECKING, Any

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion import methods
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.adapter import ModelOptions, load_encoding
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.text_encoders import LEXICAL
from culture_tasks.insertion.core.training_data import TrainingData
from culture_tasks.insertion.estimates import (
    EVALUATED,
    CaseShape,
    Device,
    ModelShape,
    PromptSize,
    Requests,
    RowEstimate,
    RowEstimator,
)
from culture_tasks.insertion.model_files import Located, locate, without_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_log = logging.getLogger(__name__)

ALL = "all"
"""Means the methods of the papers' tables."""

_MEASURED = 8  # requests whose tokens are counted
_CULTURE_TASKS = (sys.executable, "-m", "culture_tasks.cli.main")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """A table's model and settings.

    Attributes:
        out: The folder: ``states/``, ``results/``, ``logs/`` and ``report/`` are in it.
        pretrained: The multimodal model.
        model: How it is loaded.
        tasks: Names of tasks and groups to evaluate on.
        limit: Documents of each task; None means all.
        fit_limit: Training cases of a fit; None means all.
        batch_size: Requests that are answered together; ``auto`` for evaluations to begin with 32.
        backend: Model class of lmms-eval that generates for the methods that leave weights alone, or None.
        backend_arguments: Its arguments.
        options: The options of methods, by method.
        judge: Hash of the choice of a judge.
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
    def fit_batch(self) -> int:
        """Requests that a fit computes together."""
        return 16 if self.batch_size == "auto" else int(self.batch_size)


@dataclass(frozen=True, slots=True)
class MethodRow:
    """One method's fit and evaluation.

    Attributes:
        options: The settings of the table.
        method: The method.
    """

    options: TableOptions
    method: type[InsertionMethod]

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.name

    @property
    def config(self) -> MethodConfig:
        """The method's options."""
        return self.method.read_config(self.options.options.get(self.name, {}))

    @property
    def backend(self) -> str | None:
        """The backend that generates, if the method can have one."""
        return None if self.method.edits_weights else self.options.backend

    @property
    def state(self) -> Path:
        """The folder of its state."""
        return self.options.out / "states" / self.name

    @property
    def log(self) -> Path:
        """The file with all that its processes print."""
        return self.options.out / "logs" / f"{self.name}.log"

    @property
    def results(self) -> Path:
        """The folder of its results."""
        return self.options.out / "results" / self.name

    @property
    def _record(self) -> Path:
        return self.options.out / "logs" / f"{self.name}.json"

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
            "images": dict(options.model.images),
            **{name: value for name, value in _model_arguments(options.model).items() if "device" not in name},
        }

    def check(self) -> None:
        """Refuses a folder that holds this row with other settings, or graded by another judge.

        Raises:
            SettingsError: With the settings that differ.
        """
        recorded = self._recorded()
        if recorded and recorded.get("judge") != self.options.judge:
            raise SettingsError(
                f"{self.options.out}: the row {self.name} was graded by another judge. `culture-tasks rejudge "
                f"{self.options.out / 'results'} --judge …` grades all rows again; or set CULTURE_JUDGE as it was."
            )
        different = state.differences(recorded.get("settings", self.settings), self.settings)
        if different:
            raise SettingsError(
                f"{self.options.out}: holds the row {self.name} with other settings ({different}). Name another --out, "
                f"or delete {self._record} to evaluate again."
            )

    def is_fitted(self, data: TrainingData) -> bool:
        """Whether the state is of this method, its options, the model's name and the data; the rest is checked later.

        Raises:
            StateError: If the state can't be read.
        """
        if not self.method.needs_state:
            return True
        if not state.exists(self.state):
            return False
        present, _ = state.read(self.state)
        return (present.method, present.version, present.config, present.data, present.model) == (
            self.name,
            self.method.answers_version,
            self.config.model_dump(mode="json"),
            data.facts,
            self.options.pretrained,
        )

    def is_evaluated(self) -> bool:
        """Whether the record says that the result file is of these settings and this state."""
        recorded = self._recorded()
        made = {"settings": self.settings, "state": self._fingerprint()}
        return {**recorded, **made} == recorded and (self.options.out / str(recorded.get("results"))).is_file()

    @property
    def fit_command(self) -> list[str]:
        """The command that fits it."""
        options = self.options
        flags: dict[str, Any] = {
            "method": self.name,
            "pretrained": options.pretrained,
            "out": self.state,
            "features": options.out / "states" / "features.sqlite3",
            "batch-size": options.fit_batch,
            "limit": options.fit_limit,
        }
        loaded = {**_model_arguments(options.model), **options.model.images}
        flags |= {name.replace("_", "-"): value for name, value in loaded.items()}
        command = [*_CULTURE_TASKS, "insertion", "fit"]
        for name, value in flags.items():
            if value is not None:
                command += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        chosen = options.options.get(self.name, {})
        return command + [text for name, value in chosen.items() for text in ("--set", f"{name}={value}")]

    @property
    def evaluation_command(self) -> list[str]:
        """The command that evaluates it."""
        options = self.options
        arguments: dict[str, Any] = {"pretrained": options.pretrained, "method": self.name}
        arguments |= {**_model_arguments(options.model), **options.model.images}
        arguments |= {"state": self.state} if self.method.needs_state else options.options.get(self.name, {})
        if self.backend is not None:
            arguments |= {"backend": self.backend, **options.backend_arguments}
        command = [sys.executable, "-m", "lmms_eval", "--model", "knowledge_insertion", "--log_samples"]
        command += [
            "--model_args",
            ",".join(f"{name}={value}" for name, value in arguments.items() if value is not None),
        ]
        command += ["--tasks", ",".join(options.tasks), "--batch_size", options.batch_size]
        command += ["--output_path", str(self.results)]
        return command + ([] if options.limit is None else ["--limit", str(options.limit)])

    def run(self, data: TrainingData) -> None:
        """Fits and evaluates it, as far as that isn't done.

        Raises:
            CultureTasksError: If one of its processes fails.
        """
        with self._alone() as log:
            if not self.is_fitted(data):
                self._process(self.fit_command, log)
                if not self.is_fitted(data):
                    raise CultureTasksError(f"{self.name}: the fit ended without its state. See {self.log}")
            if self.is_evaluated():
                return
            shutil.rmtree(self.results, ignore_errors=True)  # of a run that was killed; its answers are elsewhere
            self._process(self.evaluation_command, log)
            found = sorted(self.results.rglob("*_results.json"))
            if not found:  # lmms-eval ends with status 0 after an error
                raise CultureTasksError(f"{self.name}: the evaluation ended without results. See {self.log}")
            file = str(found[-1].relative_to(self.options.out))
            record = {"settings": self.settings, "state": self._fingerprint(), "results": file}
            record["judge"] = self.options.judge
            partial = self._record.with_suffix(".partial")
            partial.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
            partial.replace(self._record)

    def _recorded(self) -> dict[str, Any]:
        try:
            content = json.loads(self._record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _fingerprint(self) -> str | None:
        return state.read(self.state)[0].fingerprint if self.method.needs_state else None

    @contextmanager
    def _alone(self) -> Iterator[IO[bytes]]:
        """Opens the log, whose lock its processes inherit: those of a killed table hold it until they end too."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            try:
                import fcntl  # not on Windows
            except ImportError:
                yield log
                return
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                _log.warning("insertion: another process works on the row %s; waiting for its end", self.name)
                fcntl.flock(log, fcntl.LOCK_EX)
            yield log

    def _process(self, command: Sequence[str], log: IO[bytes]) -> None:
        """Runs a command, whose output is shown and logged."""
        shown = f"\n$ {' '.join(command)}\n"
        log.write(shown.encode())
        log.flush()
        sys.stderr.write(shown)
        held = (log.fileno(),) if os.name == "posix" else ()
        started = subprocess.Popen(  # noqa: S603 - this interpreter
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=held
        )
        with started as process:
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


class Models:
    """The models of a table, none of which is loaded: all are looked for first.

    Args:
        options: The settings of the table.
        rows: Its rows.

    Attributes:
        located: Where each model is, by name.
        evaluated: The model under evaluation, without weights.

    Raises:
        SettingsError: If models can't be had; all of them are named.
    """

    def __init__(self, options: TableOptions, rows: Sequence[MethodRow]) -> None:
        chosen = options.model
        self.located: dict[str, Located] = {}
        self._shapes: dict[str, PreTrainedModel] = {}
        self._architecture = ""
        problems: dict[str, None] = {}
        try:
            self.located[options.pretrained] = locate(options.pretrained, chosen.revision)
            self.evaluated = without_weights(
                options.pretrained, chosen.revision, chosen.dtype, trust_remote_code=chosen.trust_remote_code
            )
            self._architecture = str(self.evaluated.config.model_type)
        except SettingsError as error:
            problems[str(error)] = None
        for row in rows:
            for option, name in self._names(row).items():
                if name is None and not self._architecture:
                    continue  # the paper's choice depends on the model that is missing
                try:
                    if name is None:
                        raise SettingsError(f"{row.name}: the paper names no {option} for this model.")
                    self.located.setdefault(name, locate(name))
                except SettingsError as error:
                    problems[f"{error} --set {row.name}.{option}=MODEL names another."] = None
        if problems:
            raise SettingsError("\n  ".join(["insertion: models that the table needs can't be had.", *problems]))

    def beside(self, row: MethodRow) -> dict[str, PreTrainedModel]:
        """Returns the models of a row without weights, by the options that name them."""
        models = {EVALUATED: self.evaluated}
        for option, name in self._names(row).items():
            assert name is not None  # it was looked for
            if name not in self._shapes:
                self._shapes[name] = without_weights(name, dtype=str(self.evaluated.dtype).removeprefix("torch."))
            models[option] = self._shapes[name]
        return models

    def _names(self, row: MethodRow) -> dict[str, str | None]:
        """Returns the names of a row's further models, by option; words are counted without a model."""
        named = row.method.models_of(row.config, self._architecture)
        return {option: name for option, name in named.items() if name != LEXICAL}


@dataclass(frozen=True)
class MethodTable:
    """A table of some methods.

    Attributes:
        options: Its settings.
        data: The training cases.
        documents: The documents of the tasks, without images.
        new_tokens: Most tokens of an answer.
        device: The device that estimates are for.
        rows: The rows, in order.
        models: The models that the rows load.
    """

    options: TableOptions
    data: TrainingData
    documents: Sequence[Mapping[str, Any]]
    new_tokens: int
    device: Device
    rows: Sequence[MethodRow]
    models: Models

    @cached_property
    def estimates(self) -> dict[str, RowEstimate | None]:
        """The estimate of each row that isn't finished, by method; None for a method that gives none."""
        estimates: dict[str, RowEstimate | None] = {}
        stored: set[str] = set()
        for row in self.rows:
            estimates[row.name] = estimate(
                row.method,
                row.config,
                self.models.beside(row),
                self.estimator,
                backend=row.backend is not None,
                stored=stored,
            )
        return estimates

    @cached_property
    def estimator(self) -> RowEstimator:
        """The estimator for the table's requests and training cases."""
        queries = list(dict.fromkeys(query for case in self.data.cases for query in case.queries()))
        encoding = load_encoding(self.options.pretrained, self.options.model)
        batch = self.options.batch_size
        return RowEstimator(
            device=self.device,
            prompt=PromptSize.of(
                encoding, self.models.evaluated, queries[:: max(1, len(queries) // _MEASURED)][:_MEASURED]
            ),
            requests=Requests.of(self.documents, self.new_tokens),
            cases=case_shape(self.data),
            batch=32 if batch == "auto" else int(batch),
        )

    def run(self, done: Callable[[MethodRow], None]) -> list[str]:
        """Runs all rows that aren't finished.

        Args:
            done: Called after each row that succeeded.

        Returns:
            The failures.
        """
        failures: list[str] = []
        for row in self.rows:
            try:
                row.run(self.data)
            except CultureTasksError as error:
                failures.append(str(error))
            else:
                done(row)
        return failures

    def report(self) -> int:
        """Writes the report over all rows of the folder beside the published ones, and returns its exit status."""
        results, report = self.options.out / "results", self.options.out / "report"
        command = [*_CULTURE_TASKS, "report", str(results), "-o", str(report), "--published"]
        return subprocess.run(command, check=False).returncode  # noqa: S603 - this interpreter


def rows_of(options: TableOptions, names: Sequence[str]) -> list[MethodRow]:
    """Returns the rows of methods, their options checked; ``all`` names those of the papers' tables.

    Raises:
        SettingsError: If a method or an option is unknown, or the folder holds a row with other settings.
    """
    chosen = list(dict.fromkeys(each for name in names for each in (methods.paper_rows() if name == ALL else (name,))))
    for name in options.options:
        if name not in chosen:
            known = f"The table's are {', '.join(chosen)}."
            raise SettingsError(f"insertion: --set {name}.…: {name!r} is no row.{nearest(name, chosen)} {known}")
    rows = [MethodRow(options, method_class(name)) for name in chosen]
    for row in rows:
        row.check()
    return rows


def estimate(
    method: type[InsertionMethod],
    config: MethodConfig,
    models: Mapping[str, PreTrainedModel],
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
    generating = {name for name, model in models.items() if model.can_generate()}
    encoders = [
        model.num_parameters() * model.dtype.itemsize for name, model in models.items() if name not in generating
    ]
    plain, fit = f"plain answers of a backend: {backend}", work.shared_fit or method.name
    row = estimator.row(
        work,
        {name: ModelShape.of(models[name]) for name in generating},
        inserts=method.inserts,
        beside_gib=sum(encoders) / 2**30,
        backend=backend,
        plain_is_stored=plain in stored,
        fit_is_stored=fit in stored,
    )
    stored |= {plain, fit}
    return row


def case_shape(data: TrainingData) -> CaseShape:
    """Returns the numbers of training cases that a fit's time follows from."""
    cases = data.cases
    return CaseShape(
        count=len(cases),
        requests=len(dict.fromkeys(query for case in cases for query in case.queries())),
        generality=mean(len(case.generality) for case in cases),
        locality=mean(len(case.locality) for case in cases),
    )


def _model_arguments(model: ModelOptions) -> dict[str, Any]:
    """Returns the options of a model by the names that commands and model arguments share; None for a default."""
    default = ModelOptions()
    return {
        "revision": model.revision,
        "dtype": model.dtype if model.dtype != default.dtype else None,
        "device": model.device,
        "device_map": model.device_map,
        "attn_implementation": model.attn_implementation,
        "trust_remote_code": model.trust_remote_code or None,
        "enable_thinking": model.template.get("enable_thinking") or None,
    }
