"""A study to be attacked from outside: seed 0 is quick, the others sleep for ever."""

import signal
import sys
import time
from typing import Any

from fabricated import fabricate
from lapwing.cli import main as cli
from lapwing_paper import reproduction
from lapwing_paper.executors import LocalExecutor
from lapwing_paper.run_store import Outcome, StudyRun


def sleep(specification: dict[str, Any]) -> Outcome:
    """At once for seed 0, else never."""
    if specification["seed"]:
        print("asleep", flush=True)
        time.sleep(600.0)
    return fabricate(StudyRun("claims", None, specification["seed"], specification["settings"], specification["task"]))


if __name__ == "__main__":
    # A shell that starts the tests in the background lets them ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    reproduction.make_executor = lambda on, workers: LocalExecutor(workers, sleep)
    sys.exit(cli.main(sys.argv[1:]))
