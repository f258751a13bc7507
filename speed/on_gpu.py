r"""What the paper's Table 2 costs on one GPU, measured in minutes with random weights of InternVL3.5-8B's shape.

``speed/on_gpu.sh`` runs it, with at most eight minutes. Each line is printed, and written to a JSON file, as soon as it
is measured; what runs out of memory or fails is one line, and the rest goes on. Every answer has all 64 tokens: the end
token is switched off. ``--tiny`` tries everything with a tiny model, on the CPU too.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args
from unittest.mock import patch

import torch
import transformers

from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.training_cases import Locality
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.devices import device_name, forget_peak, now, peak_gib
from culture_tasks.insertion.core.insertion_method import InsertionMethod
from culture_tasks.insertion.core.method_registry import method_class
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request, TrainingCase
from culture_tasks.insertion.core.state import DataFacts
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.training import TrainingData

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "speed"), str(ROOT / "examples"), str(ROOT / "tests")]

import insertion as speed  # noqa: E402 - a script of this folder
from support.tiny_families import family  # noqa: E402
from support.tiny_world import NAMES, Instance  # noqa: E402

SHAPE = "internvl3.5-8b"
TINY = {"requests": 4, "steps": 3, "image": 112, "batch": 2, "dtype": "float32", "device": "cpu"}
TINY_OPTIONS: Mapping[str, Mapping[str, object]] = {
    "mend": {"layers": 2, "rank": 4},
    "finetune": {"steps": 2},
    "mcki": {"route_dim": 8},
}

CASES, RAW = 4_000, 2_000
"""Single-insert cases of the test, and their raw cases (Table 1). A case has four requests, two of them of locality."""
TRAINING_CASES, TRAINING_RAW = 11_600, 5_800
LANGUAGES = 3
REQUESTS = 4 * CASES
PLAIN = LANGUAGES * RAW
"""Most distinct requests without an insertion: the plain model's answers are generated once, for all methods."""

TABLE_2: Mapping[str, Mapping[str, int]] = {
    "base": {"base request": PLAIN},
    "IKE": {"IKE request": REQUESTS},
    # Two of a case's four requests are about the insertion; the others have the plain model's answers.
    "MCKI": {"MCKI features": LANGUAGES * TRAINING_RAW + PLAIN, "MCKI request": REQUESTS // 2},
    "FineTune": {"FineTune edit": CASES, "base request": REQUESTS},
    "MEND": {"MEND step": TRAINING_CASES // 2, "MEND edit": CASES, "base request": REQUESTS},
    # The smaller model answers the two requests about the insertion: the base model's time is their upper bound.
    "SERAC": {
        "SERAC step": TRAINING_CASES,
        "base request": REQUESTS // 2,
    },
}
"""How often a row of Table 2 does what is measured here."""


class Measured(NamedTuple):
    """What was measured, the mean seconds of one, and how many were timed."""

    what: str
    seconds: float
    count: int
    prompt_tokens: int | None = None
    new_tokens: int | None = None


@dataclass(frozen=True)
class Clock:
    """Notes when the steps of each training begin and end, in place of the bar of progress."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    trainings: list[list[float]] = field(default_factory=list)

    def fit(self, method: InsertionMethod, data: TrainingData) -> None:
        """Fits a method."""
        with patch("culture_tasks.insertion.core.training.shown", self._shown):
            method.fit(data, Store(None))

    def _shown(self, items: Iterable[Any], *_: object, **__: object) -> Iterator[Any]:
        times: list[float] = []
        self.trainings.append(times)
        for item in items:
            times.append(now(self.device))
            yield item
        times.append(now(self.device))

    def measured(self, *names: str) -> Iterator[Measured]:
        """Yields the mean time of a step of each training, without its first step where there are more."""
        for name, times in zip(names, self.trainings, strict=True):
            timed = times[1:] if len(times) > 2 else times
            yield Measured(name, (timed[-1] - timed[0]) / (len(timed) - 1), len(timed) - 1)


class Bench:
    """A model with random weights, and requests to it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.decoding = options, AnswerDecoding()
        self.folder = Path(options.folder) / ("tiny" if options.tiny else SHAPE)
        threads = torch.get_num_threads()
        kind, config, processor = (None, None, None) if options.tiny else speed.shaped(SHAPE)
        if kind is None:
            tiny = family("internvl")
            model, processor = tiny.model.to(options.device), tiny.processor
        else:
            torch.set_default_dtype(getattr(torch, options.dtype))
            with torch.device(options.device):
                model = kind(config)
            torch.set_default_dtype(torch.float32)
        torch.set_num_threads(threads)  # a tiny family takes one
        model.generation_config.eos_token_id = None
        self.model = MultimodalModel(model, processor, SHAPE)
        self.requests = [self._sample(number).request for number in range(options.requests)]
        self.sample = self._sample(0, number=10_000)

    def method(self, name: str) -> InsertionMethod:
        """Returns a method with the paper's options, and models of their shape beside it."""
        options: dict[str, object] = dict(TINY_OPTIONS.get(name, {})) if self.options.tiny else {}
        if name in ("ike", "serac"):
            options["encoder"] = self._saved("sentences")
        if name == "serac":
            options["replacement"] = self._saved("replacement")
        method = method_class(name)(self.model, method_class(name).read_config(options))
        method.batch_size = self.options.batch
        return method

    def base(self) -> Iterator[Measured]:
        """Answers requests without an insertion."""
        self._answered("", self.requests[: self.options.batch])  # the first batch is slower
        yield self._answered("base request", self.requests)

    def ike(self) -> Iterator[Measured]:
        """Answers requests after an insertion and 16 demonstrations."""
        method = self.method("ike")
        method.fit(self._training(10), Store(None))
        method.insert(self.sample)
        yield self._answered("IKE request", [method.prompt(request).request for request in self.requests])

    def mcki(self) -> Iterator[Measured]:
        """Computes the features of requests, and answers them after an insertion that each activates."""
        method, start = self.method("mcki"), now(self.model.device)
        method.prepare(self.requests, [], Store(None))
        yield Measured("MCKI features", (now(self.model.device) - start) / len(self.requests), len(self.requests))
        method.threshold = -2.0  # below every similarity
        method.insert(self.sample)
        yield self._answered("MCKI request", [method.prompt(request).request for request in self.requests])

    def finetune(self) -> Iterator[Measured]:
        """Makes an edit."""
        yield self._edited("finetune", "FineTune edit")

    def mend_edit(self) -> Iterator[Measured]:
        """Makes an edit with untrained editors."""
        yield self._edited("mend", "MEND edit")

    def mend_fit(self) -> Iterator[Measured]:
        """Trains editors for some steps of two cases."""
        clock = Clock(device=self.model.device)
        clock.fit(self.method("mend"), self._training(2 * self.options.steps))
        yield from clock.measured("MEND step")

    def serac_fit(self) -> Iterator[Measured]:
        """Trains the replacement model and the classifier for some steps of one case."""
        clock = Clock(device=self.model.device)
        clock.fit(self.method("serac"), self._training(self.options.steps))
        yield from clock.measured("SERAC step")

    def _answered(self, what: str, requests: Sequence[Request]) -> Measured:
        start = now(self.model.device)
        batches = self.model.answers(requests, self.decoding, self.options.batch)
        answers = [answer for batch in batches for _, answer in batch]
        seconds = (now(self.model.device) - start) / len(requests)
        tokens = (max(getattr(answer, name) for answer in answers) for name in ("prompt_tokens", "new_tokens"))
        return Measured(what, seconds, len(requests), *tokens)

    def _edited(self, name: str, what: str) -> Measured:
        method = self.method(name)
        method.insert(self.sample)  # the first is slower
        method.reset()
        start = now(self.model.device)
        method.insert(self.sample)
        return Measured(what, now(self.model.device) - start, 1)

    def _saved(self, name: str) -> str:
        """Returns the folder of a model with random weights, which is written once."""
        if not (self.folder / name / "config.json").exists():
            speed.save("tiny" if self.options.tiny else SHAPE, name, self.folder / name)
        return str(self.folder / name)

    def _sample(self, scenario: int, language: str = "zh", number: int = 0) -> Insertion:
        """Returns an invented sample; another scenario or number is another image."""
        scenarios = len(NAMES["en"])
        seen = Instance(scenario % scenarios, number + scenario // scenarios)
        image = seen.image().resize((self.options.image, self.options.image))
        request = Request.about(image, seen.question(language), PAPER[language].system_prompt)
        return Insertion(request, seen.answer(language))

    def _training(self, count: int) -> TrainingData:
        cross_language, cross_scenario = get_args(Locality)

        def locality(sample: Insertion, kind: Locality) -> Insertion:
            return Insertion(sample.request, sample.answer, kind)

        cases = [
            TrainingCase(
                f"scenario {place}",
                self._sample(place, number=100),
                generality=(self._sample(place, number=200),),
                locality=(
                    locality(self._sample(place, "ar", number=100), cross_language),
                    locality(self._sample(place + 1, number=300), cross_scenario),
                ),
            )
            for place in range(count)
        ]
        names = tuple(case.scenario for case in cases)
        return TrainingData(cases, DataFacts(raw="", cases=f"invented {count}", count=count, scenarios=names))


def hours(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the hours of each row of Table 2 whose parts were all measured, with the arithmetic."""
    seconds = {row["what"]: row["seconds"] for row in rows if "seconds" in row}
    found: dict[str, dict[str, Any]] = {}
    for name, parts in TABLE_2.items():
        if all(part in seconds for part in parts):
            terms = [f"{count:,} x {seconds[part]:.3f} s ({part})" for part, count in parts.items()]
            total = sum(count * seconds[part] for part, count in parts.items()) / 3600
            found[name] = {"hours": round(total, 2), "arithmetic": " + ".join(terms)}
    return found


def measure(options: argparse.Namespace) -> bool:
    """Prints and writes what each part costs, and returns whether all of it could be measured."""
    start = now(torch.device(options.device))
    bench = Bench(options)
    device = bench.model.device
    rows: list[dict[str, Any]] = []
    facts = {
        "device": device_name(device),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "parameters": bench.model.model.num_parameters(),
        "shape": "tiny" if options.tiny else SHAPE,
        **{name: getattr(options, name) for name in ("dtype", "image", "batch")},
        "loading_seconds": now(device) - start,
        "rows": rows,
    }
    print(", ".join(f"{name} {value}" for name, value in facts.items() if name != "rows"), flush=True)

    def note(row: dict[str, Any], text: str) -> None:
        rows.append(row)
        Path(options.output).write_text(json.dumps({**facts, "table_2": hours(rows)}, indent=1), encoding="utf-8")
        print(f"MEASURED {row['what']}: {text}", flush=True)

    parts = (bench.base, bench.ike, bench.mcki, bench.finetune, bench.mend_edit, bench.mend_fit, bench.serac_fit)
    for part in parts:
        forget_peak()
        try:
            for measured in part():
                row = {**measured._asdict(), "peak_gib": peak_gib(device)}
                shown = "" if measured.prompt_tokens is None else f", {measured.prompt_tokens} tokens of prompt"
                note(row, f"{measured.seconds:.3f} s (mean of {measured.count}), {row['peak_gib']:.1f} GiB{shown}")
                forget_peak()
        except Exception as error:  # noqa: BLE001 - what fails is a line, and the rest goes on
            reason = (str(error).strip().splitlines() or [""])[0]
            note({"what": part.__name__, "error": f"{type(error).__name__}: {reason}"}, f"FAILED, {reason:.200}")
        gc.collect()
        torch.cuda.empty_cache()
    for name, row in hours(rows).items():
        print(f"TABLE 2 {name}: {row['hours']:.1f} h = {row['arithmetic']}")
    print(f"written: {options.output}")
    return all("error" not in row for row in rows)


def main() -> None:
    """Measures what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a tiny model, few requests and steps, on the CPU")
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--steps", type=int, default=10, help="steps of each training")
    parser.add_argument("--image", type=int, default=1328, help="side of the images")
    parser.add_argument("--batch", type=int, default=8, help="requests that are answered together")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--folder", default="build/random-models", help="where models are kept")
    parser.add_argument("--output", default="build/on_gpu.json", help="JSON file of the figures")
    if parser.parse_known_args()[0].tiny:
        parser.set_defaults(**TINY)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here. Try --tiny, or name another --device.")
    Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    sys.exit(0 if measure(options) else 1)


if __name__ == "__main__":
    main()
