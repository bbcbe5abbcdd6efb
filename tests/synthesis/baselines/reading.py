"""Problems for baselines, and what their programs look like."""

from itertools import pairwise

from colsynth import api


def problem_of(boxes, gpus=4, collective="allreduce"):
    """Return a collective in boxes of GPUs on a switch, with rails between them."""
    machine = api.load_topology("gb200-nvl72", nodes=boxes, settings={"gpus": str(gpus)})
    return api.make_problem(machine, collective)


def connections(program):
    """Return all (channel, source, target) of a program."""
    return {
        (block.channel, gpu.rank, block.send)
        for gpu in program.gpus
        for block in gpu.threadblocks
        if block.send is not None
    }


def circle(nexts):
    """Return how many ranks a walk along `nexts` visits before it is back where it began."""
    first = here = min(nexts)
    seen = [first]
    while (here := nexts[here]) != first:
        seen.append(here)
    assert all(nexts[a] == b for a, b in pairwise(seen))
    return len(set(seen))
