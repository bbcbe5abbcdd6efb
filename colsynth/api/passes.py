"""Passes of one's own."""

from __future__ import annotations


def add_pass(pass_type: type, algorithm: str | None = None, pipeline: str | None = None) -> None:
    """Make a pass of your own known to this process, and its pipeline as an algorithm.

    `compile`, `compare`, `tune` and searches then take the algorithm by its name, and vary all
    `choices` of its passes. A pass of the same name that was added before is replaced. Processes
    that work with ``jobs`` import the script, so call this outside ``if __name__ == "__main__":``.

    Parameters
    ----------
    pass_type : type
        A frozen dataclass; see `colsynth.pipeline.interface`.
    algorithm : str, optional
        Name of an algorithm, such as ``"bruck"``.
    pipeline : str, optional
        Its passes as text, from a `Problem` to a `ThreadblockProgram`.

    Raises
    ------
    InputError
        CS225: the class is no pass, or colsynth has the name. CS217: an algorithm without a
        pipeline, or the reverse. CS201 to CS205: the pipeline is wrong.
    """
    from colsynth.api.given import require_text
    from colsynth.pipeline.added import add_pass as add

    require_text("algorithm", algorithm, "bruck")
    require_text("pipeline", pipeline, "build-bruck,order-transfers,...")
    add(pass_type, algorithm, pipeline)
