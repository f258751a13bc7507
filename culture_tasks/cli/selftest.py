"""``culture-tasks selftest``: whether images reach a model, and whether the judge grades as it should.

``doctor`` looks at what is installed; this command asks the model and the judge.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from culture_tasks.cli.options import AddParser, add_json, show_findings
from culture_tasks.errors import SettingsError
from culture_tasks.selftest.findings import Finding, finding_of

_DESCRIPTION = """\
Checks a set-up by asking the model and the judge: whether images arrive, and how the judge grades
twenty clearly right or wrong answers. It takes minutes. Exit status 1: something has to be fixed.
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    model = (
        "model type of a harness, such as hf, hf-multimodal, vllm or internvl_hf; or endpoint, for an API like OpenAI's"
    )
    parser.add_argument("--model", metavar="TYPE", help=model)
    arguments = "as a harness takes them, such as pretrained=…; for endpoint model=NAME,base_url=ADDRESS"
    parser.add_argument("--model-args", "--model_args", default="", metavar="ARGS", help=arguments)
    harness = "harness that loads the model (default: lm_eval where it has the type)"
    parser.add_argument("--harness", choices=("lm_eval", "lmms_eval"), help=harness)
    parser.add_argument("--no-judge", action="store_true", help="don't ask the judge, which may cost something")
    add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    return show_findings(_examine(options), title="culture-tasks selftest", width=len("images"), as_json=options.json)


def _examine(options: argparse.Namespace) -> Iterator[tuple[str, Finding]]:
    from culture_tasks.selftest.known_verdicts import grade_known_answers
    from culture_tasks.settings import Settings

    settings = Settings.from_environment()
    if not options.model and options.no_judge:
        raise SettingsError("selftest: there is nothing to check. Name a --model, or leave out --no-judge.")
    if options.model:
        yield from _model_findings(options)  # which lets go of the model, for a judge in this process
    if not options.no_judge:
        yield "judge", finding_of(partial(grade_known_answers, settings), lambda _: "")


def _model_findings(options: argparse.Namespace) -> Iterator[tuple[str, Finding]]:
    from culture_tasks.judges.endpoint.addresses import secrets_of_arguments
    from culture_tasks.secret_texts import shown_arguments
    from culture_tasks.selftest.models import HarnessModel, load_model
    from culture_tasks.selftest.probes import images

    models: list[HarnessModel] = []
    mask = secrets_of_arguments(options.model_args).hidden

    def load() -> Finding:
        models.append(load_model(options.model, options.model_args, options.harness))
        summary = f"{options.model} of {models[0].harness.replace('_', '-')}, {shown_arguments(options.model_args)}"
        return Finding("ok", summary)

    yield "model", finding_of(load, mask)
    if models:
        yield "images", finding_of(partial(images, models[0]), mask)
