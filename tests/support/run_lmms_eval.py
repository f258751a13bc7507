"""lmms-eval's command line with the test doubles registered: ``python -m support.run_lmms_eval …``."""

from lmms_eval.__main__ import cli_evaluate
from support.lmms_models import register

if __name__ == "__main__":
    register()
    cli_evaluate()
