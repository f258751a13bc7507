"""lmms-eval's command line with the test doubles registered: ``python -m support.run_lmms_eval …``.

Of the tasks that it could run ours alone are indexed, since those of lmms-eval take seconds to read.
"""

import functools

from lmms_eval.__main__ import cli_evaluate
from lmms_eval.tasks import TaskManager
from support.lmms_models import register

if __name__ == "__main__":
    TaskManager.__init__ = functools.partialmethod(TaskManager.__init__, include_defaults=False)
    register()
    cli_evaluate()
