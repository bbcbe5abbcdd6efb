"""What each launcher needs so that the job numbers its ranks as the schedule does.

A launcher places ranks on hosts; which GPU a process takes is up to the process, and by custom the
one of its local number. So an order of GPUs within a host is spelt as ``CUDA_VISIBLE_DEVICES``,
which HIP reads too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.ranks.hosts import Place
from colsynth.text import listed


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a job.

    Parameters
    ----------
    file : str
        The launcher's file; empty where it takes none.
    commands : tuple of str
        What to type, with ``{file}`` for the name of the file.
    """

    file: str
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Job:
    """Ranks on hosts.

    Parameters
    ----------
    places : tuple of Place
    runs : tuple of (str, int)
        Hosts with how many ranks follow each other on them.
    devices : dict
        By host in order of first rank: the GPU of each local rank.
    """

    places: tuple[Place, ...]
    runs: tuple[tuple[str, int], ...]
    devices: dict[str, tuple[int, ...]]

    def require_runs(self, launcher: str) -> None:
        """Refuse hosts whose ranks do not follow each other."""
        names = [host for host, _ in self.runs]
        torn = sorted({host for host in names if names.count(host) > 1})
        if torn:
            note = f"ranks of {listed(torn)} do not follow each other"
            raise _refusal(launcher, note, "use --for slurm or --for openmpi")

    def exports(self, launcher: str) -> tuple[str, ...]:
        """Return the export that orders GPUs, the same on all hosts; none where none is needed."""
        orders = set(self.devices.values())
        if all(order == tuple(range(len(order))) for order in orders):
            return ()
        if len(orders) > 1:
            note = "the order of GPUs differs between hosts, and the environment is the same on all"
            raise _refusal(launcher, note, "use --for torchrun, which is started on each host")
        return (f"export CUDA_VISIBLE_DEVICES={_numbers(orders.pop())}",)


def launch(launcher: str, places: Sequence[Place]) -> Launch:
    """Return what a launcher needs to put rank i on place i.

    Parameters
    ----------
    launcher : str
        A key of `LAUNCHERS`.
    places : sequence of Place

    Raises
    ------
    InputError
        CS632: the launcher cannot express the order. CS633: there is no such launcher.
    """
    if launcher not in LAUNCHERS:
        phrase = f"no launcher {launcher!r}"
        raise InputError(Diagnostic("CS633", phrase, help=did_you_mean(launcher, LAUNCHERS)))
    devices: dict[str, list[int]] = {}
    for place in places:
        devices.setdefault(place.host, []).append(place.device)
    runs = tuple((host, len(list(same))) for host, same in groupby(p.host for p in places))
    job = _Job(tuple(places), runs, {host: tuple(found) for host, found in devices.items()})
    return LAUNCHERS[launcher](job)


def _openmpi(job: _Job) -> Launch:
    """Return the order of ``--host``, or a file for the mapper that goes line by line."""
    exports = job.exports("Open MPI")
    forward = " -x CUDA_VISIBLE_DEVICES" if exports else ""
    size = len(job.places)
    lines = _lines(place.host for place in job.places)
    if len(job.runs) == len(job.devices):
        hosts = ",".join(f"{host}:{count}" for host, count in job.runs)
        command = f"mpirun -np {size} --host {hosts} --map-by slot{forward} ./program"
    else:
        command = f"mpirun -np {size} --hostfile {{file}} --map-by seq{forward} ./program"
    return Launch(lines, (*exports, command))


def _slurm(job: _Job) -> Launch:
    exports = job.exports("srun")
    size, nodes = len(job.places), len(job.devices)
    command = f"srun --nodes={nodes} --ntasks={size} --distribution=arbitrary ./program"
    lines = _lines(place.host for place in job.places)
    return Launch(lines, (*exports, "export SLURM_HOSTFILE={file}", command))


def _mpich(job: _Job) -> Launch:
    """Return a hostfile; Hydra adds up the processes of a host that is listed twice."""
    job.require_runs("MPICH")
    exports = job.exports("MPICH")
    lines = _lines(f"{host}:{count}" for host, count in job.runs)
    return Launch(lines, (*exports, f"mpiexec -f {{file}} -n {len(job.places)} ./program"))


def _torchrun(job: _Job) -> Launch:
    """Return a command for each host: torchrun numbers ranks host by host."""
    job.require_runs("torchrun")
    counts = sorted({count for _, count in job.runs})
    if len(counts) > 1:
        note = f"hosts have {' and '.join(map(str, counts))} ranks; --nproc-per-node is one number"
        raise _refusal("torchrun", note, "use --for slurm or --for openmpi")
    hosts = tuple(job.devices)
    plain = all(order == tuple(range(counts[0])) for order in job.devices.values())
    commands = []
    for number, host in enumerate(hosts):
        devices = "" if plain else f"CUDA_VISIBLE_DEVICES={_numbers(job.devices[host])} "
        commands.append(
            f"ssh {host} {devices}torchrun --nnodes={len(hosts)} --node-rank={number} "
            f"--nproc-per-node={counts[0]} --master-addr={hosts[0]} --master-port=29500 program.py"
        )
    return Launch("", tuple(commands))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _numbers(order: Sequence[int]) -> str:
    return ",".join(map(str, order))


def _refusal(launcher: str, note: str, advice: str) -> InputError:
    phrase = f"{launcher} cannot number the ranks so"
    return InputError(Diagnostic("CS632", phrase, notes=(note,), help=advice))


LAUNCHERS: dict[str, Callable[[_Job], Launch]] = {
    "openmpi": _openmpi,
    "slurm": _slurm,
    "torchrun": _torchrun,
    "mpich": _mpich,
}
"""Launchers by the name of ``--for``."""
