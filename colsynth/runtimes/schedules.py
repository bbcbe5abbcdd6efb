"""Reads and writes schedule files of every runtime: XML, or plans or rounds in JSON."""

from __future__ import annotations

from colsynth.gc_pause import gc_paused
from colsynth.model import Program, RoundProgram
from colsynth.runtimes import reader, writer
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.reader import Reading


@gc_paused()
def read(data: bytes, profile: Profile, *, file: str, steps: bool = True) -> Reading:
    """Read `data` as `profile`'s runtime would.

    Parameters
    ----------
    data : bytes
    profile : Profile
    file : str
        Name used in messages.
    steps : bool
        Whether to find the steps that the operations of a plan were made of.
    """
    if profile.plans:
        from colsynth.runtimes.plans.reader import read_plan

        return read_plan(data, profile, steps=steps)
    if profile.rounds:
        from colsynth.runtimes.rounds import read_rounds

        return read_rounds(data, profile)
    return reader.read(data, profile, file=file)


def write(program: Program, profile: Profile) -> bytes:
    """Return the schedule file of a program.

    Raises
    ------
    DefectError
        CS590 when the program holds a value that the dialect cannot spell.
    LimitError
        CS402 when it does not fit a plan.
    """
    if isinstance(program, RoundProgram):
        from colsynth.runtimes.rounds import write_rounds

        return write_rounds(program)
    if profile.plans:
        from colsynth.runtimes.plans.writer import write_plan

        return write_plan(program, profile)
    return writer.write(program, profile)
