"""Writes, as JSON, what the parsers of TRL and accelerate make of the recipes that the command line names.

A process of its own, since TRL's options warn of what is deprecated and set up accelerate for the whole process.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from accelerate.commands.launch import launch_command_parser
from trl import ModelConfig, ScriptArguments, TrlParser
from trl.cli.accelerate_config import resolve_accelerate_config_argument
from trl.experimental.cpo import CPOConfig


def parsed(recipe: Path) -> dict[str, Any]:
    """Gives all options of a training, and under ``launch`` what is left for accelerate."""
    method = recipe.name.split(".")[0]
    if method == "simpo":
        parser = TrlParser((ScriptArguments, CPOConfig, ModelConfig))
    else:
        parser = importlib.import_module(f"trl.scripts.{method}").make_parser()
    arguments = ["--config", str(recipe), "--use_cpu", "true", "--bf16", "false"]
    *groups, remainder = parser.parse_args_and_config(arguments, return_remaining_strings=True)
    launch = launch_command_parser().parse_args(resolve_accelerate_config_argument([*remainder, "script.py"]))
    options = {name: value for group in groups for name, value in dataclasses.asdict(group).items()}
    return options | {"rest": remainder, "launch": {"num_processes": launch.num_processes}}


if __name__ == "__main__":
    sys.stdout.write(json.dumps({recipe: parsed(Path(recipe)) for recipe in sys.argv[1:]}, default=str))
