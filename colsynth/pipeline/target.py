"""What a problem is compiled for: options checked against one runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from colsynth.errors import Diagnostic, InputError, LimitError, did_you_mean, require_whole
from colsynth.model import Collective, Problem
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target
from colsynth.units import format_most, format_size, plural

Progress = Callable[[str, int, int], None]
"""Told (what, done, total) by long work."""

_MOST_BYTES = 2**63 - 1
"""What the runtimes read from a file; anything above is read as this."""

SYNTHESIZE = "'colsynth synthesize' gives a timed schedule for any collective and group"


def aim(
    problem: Problem,
    profile: Profile,
    protocol: str = "Simple",
    min_bytes: int | None = None,
    max_bytes: int | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Target:
    """Return the target of a compilation; the modes of the call are set later.

    Parameters
    ----------
    problem : Problem
    profile : Profile
    protocol : str
    min_bytes, max_bytes : int, optional
        Inclusive. Left out, they are the smallest that is safe and the largest that the
        runtime can count for the program; the latter is known once the program is.
    seed : int
    progress : callable, optional

    Raises
    ------
    InputError
        CS213 for an unknown protocol, CS212 for sizes that the runtime cannot serve.
    LimitError
        CS220, CS221 and CS404 where the runtime cannot run the collective so.
    """
    if protocol not in tuple(profile.fifo_calls):  # from Python it may have no hash
        phrase = f"there is no protocol {protocol!r}"
        advice = did_you_mean(str(protocol), profile.fifo_calls)
        raise InputError(Diagnostic("CS213", phrase, help=advice))
    _check_collective(problem, profile, protocol)
    least = profile.least_min_bytes if min_bytes is None else min_bytes
    _check_sizes(profile, least, max_bytes)
    most = None if max_bytes is None else int(max_bytes)  # numpy's lack methods of ints
    target = Target(profile, protocol, min_bytes=int(least), max_bytes=most, seed=seed)
    return target if progress is None else replace(target, progress=progress)


def require_served(collective: Collective, profile: Profile) -> None:
    """Refuse a collective for which a runtime has no files (CS220)."""
    if collective not in profile.collectives:
        phrase = f"{profile.name} runs no schedules for {collective}"
        advice = f"it runs {', '.join(profile.collectives)}; {SYNTHESIZE}"
        raise LimitError(Diagnostic("CS220", phrase, help=advice))


def usual_protocol(problem: Problem, profile: Profile) -> str:
    """Return the protocol where the user names none: LL128 where Simple would hang (CS221)."""
    return "LL128" if _hangs(problem, profile) else "Simple"


def _hangs(problem: Problem, profile: Profile) -> bool:
    """Whether a collective hangs with Simple (contract, rule C04)."""
    several = len(problem.topology.boxes) > 1
    return profile.xml and problem.collective.rooted and several


def _check_collective(problem: Problem, profile: Profile, protocol: str) -> None:
    collective = problem.collective
    require_served(collective, profile)
    if problem.groups:
        phrase = f"{profile.name} runs a file on all ranks of a communicator, in their order"
        advice = f"take one group as a machine of its own (api.communicators); {SYNTHESIZE}"
        raise LimitError(Diagnostic("CS404", phrase, help=advice))
    if problem.has_several_roots:
        phrase = f"a {collective} has one root on {profile.name}"
        advice = f"compile a file for each root, for a part of the message; {SYNTHESIZE}"
        raise LimitError(Diagnostic("CS404", phrase, help=advice))
    if problem.shards:
        phrase = f"{profile.name} divides every message evenly among the ranks"
        raise LimitError(Diagnostic("CS404", phrase, help=SYNTHESIZE))
    if profile.plans and collective.rooted and protocol != "Simple":
        phrase = f"{collective} with packets is not safe on {profile.name}"
        note = "a rank may finish the next call before others have read the packets of this one"
        advice = "use --protocol Simple"
        raise LimitError(Diagnostic("CS221", phrase, notes=(note,), help=advice))
    if protocol == "Simple" and _hangs(problem, profile):
        raise LimitError(
            Diagnostic(
                "CS221",
                f"{collective} over a network hangs with protocol Simple on {profile.name}",
                notes=("the network proxy counts other steps than the kernel (rule C04)",),
                help="use --protocol LL128 or --protocol LL",
            )
        )


def _check_sizes(profile: Profile, least: int, most: int | None) -> None:
    require_whole("--min-bytes", least)
    if most is not None:
        require_whole("--max-bytes", most)
    if least < profile.least_min_bytes:
        raise _wrong_size(
            f"--min-bytes {format_size(least)} is too small for {profile.name}",
            f"calls of fewer than {plural(profile.least_min_bytes, 'byte')} fail there",
        )
    if max(least, most or 0) > _MOST_BYTES:
        raise _wrong_size(f"message sizes reach to {format_size(_MOST_BYTES)}")
    limit = profile.default_max_bytes
    if most is not None and limit is not None and most > limit:
        raise _wrong_size(
            f"--max-bytes {format_size(most)} is too large for {profile.name}",
            f"it serves messages {format_most(limit)}",
        )
    most = limit if most is None else most
    if most is not None and most < max(least, 1):
        span = f"from {format_size(least)}, {format_most(most)}"
        raise _wrong_size(f"the range of message sizes is empty: {span}")


def _wrong_size(phrase: str, *notes: str) -> InputError:
    return InputError(Diagnostic("CS212", phrase, notes=notes))
