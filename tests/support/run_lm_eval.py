"""``culture-tasks lm-eval`` as a process of its own: ``python -m support.run_lm_eval run …``.

Of the tasks that it could run ours alone are indexed, and the machine's packages aren't listed: both take it seconds.
"""

import functools
import sys

from lm_eval import evaluator
from lm_eval.tasks import TaskManager

from culture_tasks.cli.main import main


def run(*arguments: str) -> int:
    """Runs the command with these arguments, and returns its exit status."""
    TaskManager.__init__ = functools.partialmethod(TaskManager.__init__, include_defaults=False)
    evaluator.add_env_info = lambda results: None
    return main(["lm-eval", *arguments])


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
