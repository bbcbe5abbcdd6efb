"""One rank of a job: reads the files, executes its part of each, and tells rank 0."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from colsynth.errors import Diagnostic, InputError
from colsynth.execute.definition import Call
from colsynth.execute.job import FileJob, Job, Outcome, Report
from colsynth.execute.loop import LATE, Plan, Program, Session, Strand
from colsynth.execute.mail import Mail
from colsynth.execute.threadblocks import Send, XmlProgram
from colsynth.execute.transport import Message, Transport
from colsynth.model import ThreadblockProgram

if TYPE_CHECKING:
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.reader import Reading

Told = Callable[[Outcome], None]
_FOREVER = 1e9


class _Nothing:
    """The program of ranks that only wait for all others."""

    def background(self) -> list[Strand]:
        return []

    def launch(self, number: int) -> list[Strand]:
        return []

    def take(self, message: Message) -> None:
        """There is none."""

    def finish(self, number: int) -> None:
        """There is nothing to do."""

    def left(self) -> list[str]:
        return []


class Rank:
    """Executes a job over a transport.

    Parameters
    ----------
    transport : Transport
    job : Job
    told : callable
        Called on rank 0 with every outcome.
    """

    def __init__(self, transport: Transport, job: Job, told: Told) -> None:
        self.transport, self.job, self.told = transport, job, told
        self.mail = Mail(transport)

    def run(self) -> None:
        """Execute all files, and leave when all ranks have."""
        for number, file in enumerate(self.job.files):
            if self.transport.rank < file.ranks:
                self._file(number, file)
            else:
                self.mail.session += len(file.sizes) * len(file.in_place)
        self.mail.begin()
        Session(self.mail, self.transport.size, _Nothing(), Plan(1, timeout=_FOREVER)).run()
        self.transport.close()

    def _file(self, number: int, file: FileJob) -> None:
        from colsynth.runtimes.catalog import profile
        from colsynth.runtimes.schedules import read

        target = profile(file.runtime)
        reading = read(Path(file.path).read_bytes(), target, file=file.name)
        for size in file.sizes:
            for in_place in file.in_place:
                self._call(Outcome(number, size, 0, in_place), reading, target)

    def _call(self, outcome: Outcome, reading: Reading, target: Profile) -> None:
        """Execute a file at one size in one mode."""
        header = reading.header
        if header is None:
            raise ValueError("the file has no program")
        dtype, job = np.dtype(self.job.dtype), self.job
        elements = outcome.size // dtype.itemsize
        call = Call(header, reading.custom, self.transport.rank, dtype, elements, outcome.in_place)
        outcome.custom, outcome.count = reading.custom, min(call.counts)
        self.mail.begin()
        program = _Checked(_program(reading, target, call, self.mail.send, job), call, job.launches)
        timed = 1 + job.repeat if job.repeat else 0
        launches = job.launches + timed
        plan = Plan(launches, job.held, job.launches, job.seed, job.timeout)
        session = Session(self.mail, header.ranks, program, plan)
        report = Report(session.run(), session.verdict == LATE, program.wrong)
        if not report.over:
            report.stuck = session.stuck()
        else:
            marks = session.ends[job.launches :]
            report.seconds = (marks[-1] - marks[0]) / job.repeat if timed else None
            report.left = program.left()
            if not reading.custom:
                report.library = self._library(call)
        data = np.frombuffer(msgspec.json.encode(report), np.uint8)
        found = self.mail.gather(header.ranks, data)
        if found:
            reports = [msgspec.json.decode(one.tobytes(), type=Report) for one in found]
            self.told(_judged(outcome, reports, header.collective.rooted))

    def _library(self, call: Call) -> tuple[float, int | None] | None:
        """Run the library's own collective on the same data; return seconds and wrong elements.

        Results are compared where those of the file are.
        """
        header = call.header
        name, ranks = header.collective.value, header.ranks
        own = Call(header, False, call.rank, call.dtype, call.elements, in_place=False)
        own.fill(0)
        for _ in range(2):  # the first one connects
            seconds = self.transport.collective(name, ranks, 0, own.given, own.taken)
        if seconds is None:
            return None
        return seconds, own.wrong(0)[0] if self.job.launches else None


class _Checked:
    """A program whose first calls get new data and are compared with the definition."""

    def __init__(self, program: Program, call: Call, checked: int) -> None:
        self.program, self.call, self.checked = program, call, checked
        self.background, self.take, self.left = program.background, program.take, program.left
        self.wrong: list[int] = []

    def launch(self, number: int) -> list[Strand]:
        """Fill the buffers where the result will be checked."""
        if number < self.checked:
            self.call.fill(number)
        return self.program.launch(number)

    def finish(self, number: int) -> None:
        """Compare the result."""
        self.program.finish(number)
        if number < self.checked:
            found = self.call.wrong(number)
            self.wrong = [a + b for a, b in zip(self.wrong or [0] * len(found), found, strict=True)]


def _program(reading: Reading, target: Profile, call: Call, send: Send, job: Job) -> Program:
    if reading.plan is not None:
        from colsynth.execute.plans import PlanProgram

        return PlanProgram(reading.plan, target, call, send)
    if not isinstance(reading.program, ThreadblockProgram):
        raise ValueError("the file has no program of threadblocks")
    return XmlProgram(reading.program, target, call, send, job.tile)


def _judged(outcome: Outcome, reports: list[Report], rooted: bool) -> Outcome:
    """Return what all ranks together saw; the root is the one for which least is wrong."""
    outcome.late = any(report.late for report in reports)
    outcome.stuck = [entry for report in reports for entry in report.stuck]
    outcome.left = [
        f"rank {rank}: {text}" for rank, report in enumerate(reports) for text in report.left
    ]
    sums = [sum(column) for column in zip(*(report.wrong for report in reports), strict=False)]
    if sums and not outcome.custom:
        outcome.wrong = min(sums)
        outcome.root = sums.index(outcome.wrong) if rooted else None
    times = [report.seconds for report in reports if report.seconds is not None]
    outcome.seconds = max(times, default=None)
    library = [report.library for report in reports if report.library is not None]
    if library:
        outcome.library_seconds = max(seconds for seconds, _ in library)
        compared = [wrong for _, wrong in library if wrong is not None]
        outcome.library_wrong = sum(compared) if compared else None
    return outcome


def connect(backend: str) -> Transport:
    """Return the transport of a backend: ``"mpi"``, or ``"gloo"`` of PyTorch."""
    if backend == "mpi":
        from colsynth.execute.mpi import MpiTransport

        return MpiTransport()
    from colsynth.execute.torch import TorchTransport

    return TorchTransport()


def join(job: Job, backend: str) -> list[Outcome] | None:
    """Execute a job as one of the ranks that a launcher has started.

    Returns
    -------
    list of Outcome or None
        None in all ranks but the first.

    Raises
    ------
    InputError
        CS667: there are fewer ranks than the files have.
    """
    outcomes: list[Outcome] = []
    np.seterr(all="ignore")  # timed calls sum without end where they are in place
    transport = connect(backend)
    most = max(file.ranks for file in job.files)
    if transport.size < most:
        transport.close()
        phrase = f"the launcher started {transport.size} ranks, and a file has {most}"
        raise InputError(Diagnostic("CS667", phrase, help=f"start {most} ranks"))
    Rank(transport, job, outcomes.append).run()
    return outcomes if transport.rank == 0 else None


def main(folder: str, backend: str) -> None:
    """Execute the job in a folder as one of the ranks that a starter has started."""
    place = Path(folder)
    job = msgspec.json.decode((place / "job.json").read_bytes(), type=Job)
    if job.starter is not None:
        Thread(target=_follow, args=(job.starter,), daemon=True).start()
    np.seterr(all="ignore")  # as in `join`

    def told(outcome: Outcome) -> None:
        with (place / "outcomes.jsonl").open("ab") as file:
            file.write(msgspec.json.encode(outcome) + b"\n")

    try:
        Rank(connect(backend), job, told).run()
    except BaseException:  # noqa: BLE001 - whatever it is, all ranks must end
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # MPI would wait for the others, which wait for this rank


def _follow(starter: int) -> None:
    """End this process when the one that started the job has ended, however it did."""
    while True:
        time.sleep(0.5)
        try:
            os.kill(starter, 0)
        except OSError:
            os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
