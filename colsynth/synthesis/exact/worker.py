"""The process of the solver, which answers questions one after the other.

OR-tools and highspy bring libraries of one name and different versions, so no process can load
both. The process is started with the first question and ends with ours.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from colsynth.errors import DefectError, Diagnostic, InputError
from colsynth.synthesis.exact.instance import Instance
from colsynth.synthesis.exact.intervals import Intervals, Timing
from colsynth.synthesis.exact.joint import Joint, JointQuestion
from colsynth.synthesis.exact.steps import Answer, Question, Steps, fewest_steps

_ROOT = Path(__file__).parents[3]

_MODELS: dict[type, Any] = {Timing: Intervals, JointQuestion: Joint, Question: Steps}


def require_solver() -> None:
    """Raise where OR-tools is not installed.

    Raises
    ------
    InputError
        CS326.
    """
    if find_spec("ortools") is None:
        phrase = "exact schedules need OR-tools, which is not installed"
        advice = "pip install 'colsynth[exact]', or take -a ten"
        raise InputError(Diagnostic("CS326", phrase, help=advice))


def solve(asked: Instance, question: Question | Timing) -> Answer:
    """Return the answer to a question about a phase.

    Raises
    ------
    InputError
        CS326.
    DefectError
        CS906: the process ended.
    """
    require_solver()
    if type(question) is Question and question.steps < fewest_steps(asked):
        return Answer("infeasible")
    process = _process()
    try:
        pickle.dump((asked, question), process.stdin)
        process.stdin.flush()
        answer: Answer = pickle.load(process.stdout)  # noqa: S301 - from our own process
    except (EOFError, OSError, LookupError, ValueError, pickle.UnpicklingError):
        _process.cache_clear()
        with suppress(OSError), process:  # closes its input: one that printed no answer ends, too
            pass
        phrase = f"the solver's process ended with code {process.returncode}"
        raise DefectError(Diagnostic("CS906", phrase)) from None
    except BaseException:  # an answer that nobody waits for must not be taken for the next one
        _process.cache_clear()
        process.kill()
        process.communicate()
        raise
    return answer


@cache
def _process() -> Any:
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(  # noqa: S603 - a module of ours
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    atexit.register(end)
    return process


def end() -> None:
    """End the solver's process, if there is one."""
    if _process.cache_info().currsize:
        process = _process()
        _process.cache_clear()
        process.kill()
        process.communicate()


def _serve() -> None:
    """Answer questions from stdin until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the solver never looks for exceptions
    while True:
        try:
            asked, question = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our parent
        except EOFError:
            return
        model = _MODELS[type(question)]
        pickle.dump(model(asked, question).solve(), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
