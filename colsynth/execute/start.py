"""Starts the ranks of a job on this machine, and ends all of them whatever happens."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import msgspec

from colsynth.errors import Diagnostic, InputError, NegativeFinding
from colsynth.execute.job import Job, Outcome

BACKENDS = ("mpi", "gloo")
_EXTRA = {"mpi": ("mpi4py", "mpi"), "gloo": ("torch", "torch")}
_LOOK = 0.02
_KILLED = (-signal.SIGKILL, signal.SIGKILL, 128 + signal.SIGKILL)
"""Exit codes of a process that was killed, of MPICH's mpiexec and of Open MPI's beside it."""
_STARTING = 60.0
"""Seconds until the first rank must have begun; machines with many ranks per core are slow."""

_JOINS: Mapping[str, tuple[str, ...]] = {
    "mpi": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"),
    "gloo": ("TORCHELASTIC_RUN_ID", "WORLD_SIZE"),
}
"""Variables of launchers: mpirun of Open MPI and of MPICH, srun; torchrun."""

_RELAXED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
"""What Open MPI wants before it starts more ranks than cores, and as root in containers."""


def is_rank(backend: str) -> bool:
    """Whether a launcher has started this process as one of several ranks."""
    return any(os.environ.get(name, "1") != "1" for name in _JOINS[backend])


def require_backend(backend: str) -> None:
    """Refuse a backend that is unknown (CS660) or not installed (CS661)."""
    if backend not in BACKENDS:
        advice = f"write one of {', '.join(BACKENDS)}"
        raise InputError(Diagnostic("CS660", f"there is no backend {backend!r}", help=advice))
    module, extra = _EXTRA[backend]
    if find_spec(module) is None:
        phrase = f"--backend {backend} needs {module}, which is not installed"
        advice = f"pip install 'colsynth[{extra}]'"
        raise InputError(Diagnostic("CS661", phrase, help=advice))


def execute(job: Job, backend: str, told: Callable[[Outcome], None] | None = None) -> list[Outcome]:
    """Return the outcomes of a job, executed by processes of this machine.

    Parameters
    ----------
    job : Job
    backend : str
        ``"mpi"`` or ``"gloo"``.
    told : callable, optional
        Called with every outcome when it is there.

    Raises
    ------
    InputError
        CS661: there is no ``mpiexec``.
    NegativeFinding
        CS662: a process ended early, or none answered.
    """
    job = msgspec.structs.replace(job, starter=os.getpid())
    expected = sum(len(file.sizes) * len(file.in_place) for file in job.files)
    ranks = max(file.ranks for file in job.files)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="colsynth-run-") as name:
        folder = Path(name)
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        with _started(backend, ranks, folder) as processes:
            last = time.monotonic()
            while True:
                ended = [process.poll() for process in processes]
                fresh = _read(folder)[len(outcomes) :]
                for outcome in fresh:
                    outcomes.append(outcome)
                    last = time.monotonic()
                    if told is not None:
                        told(outcome)
                if any(code in _KILLED for code in ended):
                    raise _killed()
                if any(code not in (None, 0) for code in ended):
                    raise _failed("a rank ended early", folder)
                if all(code == 0 for code in ended):
                    break
                if time.monotonic() > last + _STARTING + 2 * job.timeout:
                    raise _failed("the ranks do not answer", folder)
                time.sleep(_LOOK)
            if len(outcomes) < expected:
                raise _failed("the ranks ended without an answer", folder)
    return outcomes


def _read(folder: Path) -> list[Outcome]:
    """Return the outcomes that rank 0 has written completely."""
    try:
        text = (folder / "outcomes.jsonl").read_bytes()
    except FileNotFoundError:
        return []
    lines = text.split(b"\n")[:-1]
    return [msgspec.json.decode(line, type=Outcome) for line in lines]


def _killed() -> NegativeFinding:
    """Return the refusal where what the others say of it tells nothing."""
    note = "by SIGKILL, as systems do where memory runs out"
    advice = "give a smaller --size: every rank holds its buffers, and the expected ones"
    return NegativeFinding(Diagnostic("CS662", "a rank was killed", notes=(note,), help=advice))


def _failed(phrase: str, folder: Path) -> NegativeFinding:
    """Return the refusal with the end of what the ranks said."""
    said = (folder / "stderr").read_text(errors="replace").strip().splitlines()
    lines = [line.strip() for line in said if line.strip()]
    telling = [line for line in lines if re.match(r"[\w.]*Error\b", line)] or lines
    notes = tuple(dict.fromkeys(telling))[-3:]  # ranks often say the same
    return NegativeFinding(Diagnostic("CS662", phrase, notes=notes))


@contextmanager
def _started(backend: str, ranks: int, folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start the ranks; at the end of the block none is left."""
    work = [sys.executable, "-m", "colsynth.execute.rank", str(folder), backend]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if backend == "mpi":
        commands = [([_mpiexec(), "-n", str(ranks), *work], environment | _RELAXED)]
    else:
        shared = environment | {"WORLD_SIZE": str(ranks), "COLSYNTH_STORE": str(folder / "store")}
        shared.setdefault("GLOO_SOCKET_IFNAME", "lo")
        commands = [(work, shared | {"RANK": str(rank)}) for rank in range(ranks)]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "stderr").open("wb") as errors:
            for command, variables in commands:
                processes.append(
                    subprocess.Popen(  # noqa: S603 - our own module
                        command,
                        env=variables,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=errors,
                        start_new_session=True,
                    )
                )
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGTERM)
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _mpiexec() -> str:
    """Return the launcher: of the wheel beside this Python, or any other."""
    beside = Path(sys.prefix) / "bin" / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        advice = "pip install 'colsynth[mpi]' brings one"
        raise InputError(Diagnostic("CS661", "there is no mpiexec", help=advice))
    return found
