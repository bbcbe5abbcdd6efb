"""Schedule files, of colsynth or of others: whether they are right, and how fast they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from colsynth.model import Report, Topology

if TYPE_CHECKING:
    from colsynth.simulate import Model, Simulation


def verify(
    data: bytes, runtime: str, *, subject: str = "schedule", single_node: bool | None = None
) -> Report:
    """Return everything wrong with a schedule file, as `runtime` would read and run it.

    Parameters
    ----------
    data : bytes
    runtime : str
    subject : str
        Name of the file, for the report.
    single_node : bool, optional
        Whether all ranks are in one box, where that is known.

    Raises
    ------
    InputError
        There is no such runtime.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.verify import verify_bytes

    return verify_bytes(data, profile(runtime), subject=subject, single_node=single_node)


def simulate(
    data: bytes,
    runtime: str,
    topology: Topology,
    sizes: Sequence[int],
    *,
    model: Model | None = None,
    subject: str = "schedule",
) -> Simulation:
    """Return the predicted time of a schedule file at each message size.

    Parameters
    ----------
    data : bytes
    runtime : str
    topology : Topology
        Of as many ranks as the file is for.
    sizes : sequence of int
        Bytes, as nccl-tests counts them.
    model : Model, optional
        The constants of the simulator; those of the runtime unless given.
    subject : str
        Name of the file, for the answer.

    Raises
    ------
    InputError
        CS605: the file holds no program; CS600: it is for another number of ranks; CS602: it
        cannot be connected; CS604: a size is below one byte.
    InfeasibleError
        CS601: the program sends where no links lead.
    VerificationError
        CS603: the program does not finish at one of the sizes.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.runtimes.selection import taken_sizes
    from colsynth.simulate import Simulation, read_program
    from colsynth.simulate import simulate as execute

    target = profile(runtime)
    program = read_program(data, target, subject)
    points = execute(program, topology, target, sizes, model)
    header, law = program.header, taken_sizes(program.header, target)
    selected = tuple(law.takes(point.size_bytes) for point in points)
    names = (subject, runtime, topology.name)
    return Simulation(*names, header.ranks, header.collective, points, selected)
