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

_ORDER = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a job.

    Parameters
    ----------
    file : str
        The launcher's file; empty where the commands take none.
    commands : tuple of str
        What to type in a shell, with ``{file}`` for the name of the file, to be quoted.
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
            note += ", and hosts order their GPUs differently" if self.varies else ""
            others = "--for slurm" if self.varies else "--for slurm or --for openmpi"
            raise _refusal(launcher, note, f"use {others}")

    @property
    def orders(self) -> dict[str, str]:
        """By host: the GPUs of its ranks as text, where these are not 0, 1, 2 and so on."""
        rows = self.devices.items()
        return {host: _numbers(row) for host, row in rows if row != tuple(range(len(row)))}

    @property
    def varies(self) -> bool:
        """Whether hosts order their GPUs differently, as after the failure of one."""
        return len(set(self.devices.values())) > 1 and bool(self.orders)

    @property
    def exports(self) -> tuple[str, ...]:
        """The export that orders GPUs, the same on all hosts; none where none is needed."""
        return tuple(f"export {_ORDER}={order}" for order in sorted(set(self.orders.values())))


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
    require_launcher(launcher)
    devices: dict[str, list[int]] = {}
    for place in places:
        devices.setdefault(place.host, []).append(place.device)
    runs = tuple((host, len(list(same))) for host, same in groupby(p.host for p in places))
    job = _Job(tuple(places), runs, {host: tuple(found) for host, found in devices.items()})
    return LAUNCHERS[launcher](job)


def require_launcher(launcher: str) -> None:
    """Refuse a launcher that is not in `LAUNCHERS` (CS633)."""
    if launcher not in LAUNCHERS:
        phrase = f"no launcher {launcher!r}"
        raise InputError(Diagnostic("CS633", phrase, help=did_you_mean(launcher, LAUNCHERS)))


def takes_file(launcher: str, *, by_host: bool) -> bool:
    """Whether a launcher may need a file; `by_host`: ranks of a host follow each other."""
    return launcher != "torchrun" and not (by_host and launcher == "openmpi")


def _openmpi(job: _Job) -> Launch:
    """Return a command with the order of hosts, or a file for the mapper that goes line by line.

    Where hosts order their GPUs differently, each is a part of the command with its environment.
    """
    size = len(job.places)
    if job.varies:
        job.require_runs("Open MPI")
        parts = (
            f"-np {count} --host {host}:{count} {_given(f'-x {_ORDER}=', job, host)}./program"
            for host, count in job.runs
        )
        return Launch("", (f"mpirun {' : '.join(parts)}",))
    forward = f" -x {_ORDER}" if job.exports else ""
    if len(job.runs) == len(job.devices):
        hosts = ",".join(f"{host}:{count}" for host, count in job.runs)
        command = f"mpirun -np {size} --host {hosts} --map-by slot{forward} ./program"
        return Launch("", (*job.exports, command))
    command = f"mpirun -np {size} --hostfile {{file}} --map-by seq{forward} ./program"
    return Launch(_lines(place.host for place in job.places), (*job.exports, command))


def _slurm(job: _Job) -> Launch:
    """Return a file of hosts; where these order their GPUs differently, tasks look up their own."""
    size, nodes = len(job.places), len(job.devices)
    program, exports = "./program", job.exports
    if job.varies:
        cases = " ".join(f"{host}) export {_ORDER}={row};;" for host, row in job.orders.items())
        program, exports = f"bash -c 'case $SLURMD_NODENAME in {cases} esac; exec ./program'", ()
    command = f"srun --nodes={nodes} --ntasks={size} --distribution=arbitrary {program}"
    lines = _lines(place.host for place in job.places)
    return Launch(lines, (*exports, "export SLURM_HOSTFILE={file}", command))


def _mpich(job: _Job) -> Launch:
    """Return a hostfile; Hydra adds up the processes of a host that is listed twice.

    Its parts of a command fill the hosts in order; hosts cannot be given for each part.
    """
    job.require_runs("MPICH")
    lines = _lines(f"{host}:{count}" for host, count in job.runs)
    if job.varies:
        parts = (
            f"-n {count} {_given(f'-env {_ORDER} ', job, host)}./program"
            for host, count in job.runs
        )
        return Launch(lines, (f"mpiexec -f {{file}} {' : '.join(parts)}",))
    return Launch(lines, (*job.exports, f"mpiexec -f {{file}} -n {len(job.places)} ./program"))


def _given(option: str, job: _Job, host: str) -> str:
    """Return an option with a host's order of GPUs and a space, or nothing."""
    return f"{option}{job.orders[host]} " if host in job.orders else ""


def _torchrun(job: _Job) -> Launch:
    """Return a command for each host: torchrun numbers ranks host by host."""
    job.require_runs("torchrun")
    counts = sorted({count for _, count in job.runs})
    if len(counts) > 1:
        note = f"hosts have {' and '.join(map(str, counts))} ranks; --nproc-per-node is one number"
        raise _refusal("torchrun", note, "use --for slurm or --for openmpi")
    hosts = tuple(job.devices)
    commands = []
    for number, host in enumerate(hosts):
        devices = f"{_ORDER}={_numbers(job.devices[host])} " if job.orders else ""
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
