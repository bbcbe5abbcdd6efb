"""Compiles the kernels that most tests need: once, not in each of their processes.

Run by ``make test`` before the tests. Where an earlier run has left them compiled it takes
two seconds; where none has, as in CI, it saves every worker and every command that a test
starts most of a minute.
"""

from colsynth import api

WALKS = (
    ("dgx-a100", 2, "allreduce", "forest", {}),
    ("mesh:3x3", None, "allreduce", "forest", {}),
    ("dgx-a100", 1, "alltoall", "ten", {}),
    ("dgx-a100", 2, "allgather", "ten", {"policy": "rarest"}),
    ("ring:4", None, "reduce-scatter", "ten", {"policy": "oldest"}),
)


def main() -> None:
    """Compile one schedule of every kind."""
    for machine, boxes, collective, algorithm, options in WALKS:
        problem = api.make_problem(api.load_topology(machine, nodes=boxes), collective)
        api.compile(problem, "msccl", algorithm=algorithm, **options)


if __name__ == "__main__":
    main()
