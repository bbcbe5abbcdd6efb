"""Call modes: which of them are served, and by how many files.

In-place and out-of-place calls alias their buffers differently (runtime contract 4.8). So a program
serves one of them, or both only if it was built for both.
"""

from __future__ import annotations

from enum import StrEnum

from colsynth.errors import Diagnostic, InputError, LimitError, did_you_mean
from colsynth.model import Collective
from colsynth.runtimes.profile import Profile


class Mode(StrEnum):
    """A call mode that a user can ask for; AUTO serves as many calls as the files allow."""

    AUTO = "auto"
    BOTH = "both"
    IN_PLACE = "in-place"
    OUT_OF_PLACE = "out-of-place"

    @property
    def in_place(self) -> bool:
        """Whether in-place calls are served."""
        return self is not Mode.OUT_OF_PLACE

    @property
    def out_of_place(self) -> bool:
        """Whether out-of-place calls are served."""
        return self is not Mode.IN_PLACE


def parse_mode(text: str) -> Mode:
    """Return the mode of that name; raise InputError CS213 if there is none."""
    names = [mode.value for mode in Mode]
    if text not in names:
        phrase = f"there is no mode {text!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(str(text), names)))
    return Mode(text)


def plan_modes(
    profile: Profile, wanted: Mode, several: bool, collective: Collective
) -> tuple[Mode, ...]:
    """Return the mode of each file to write, none of them AUTO.

    Parameters
    ----------
    profile : Profile
    wanted : Mode
    several : bool
        Whether more than one file may be written.
    collective : Collective

    Raises
    ------
    InputError
        CS209: BOTH is wanted in one file, and the runtime serves one mode per file.
    LimitError
        CS223: in-place calls are wanted, and the runtime refuses them.
    """
    if collective in profile.out_of_place_only:
        return _out_of_place(profile, wanted, collective)
    if wanted in (Mode.IN_PLACE, Mode.OUT_OF_PLACE):
        return (wanted,)
    if profile.both_modes:
        return (Mode.BOTH,)
    if several:
        return (Mode.IN_PLACE, Mode.OUT_OF_PLACE)
    if wanted is Mode.AUTO:
        return (Mode.IN_PLACE,)
    raise InputError(
        Diagnostic(
            "CS209",
            f"one file of {profile.name} cannot serve both modes of the call",
            help="give a directory to --output for one file each, or choose one --mode",
        )
    )


def _out_of_place(profile: Profile, wanted: Mode, collective: Collective) -> tuple[Mode, ...]:
    """Return out-of-place, if the user allows it."""
    if wanted in (Mode.AUTO, Mode.OUT_OF_PLACE):
        return (Mode.OUT_OF_PLACE,)
    phrase = f"{profile.name} refuses in-place calls of {collective}"
    advice = "use --mode out-of-place"
    raise LimitError(Diagnostic("CS223", phrase, help=advice))


def mode_notes(profile: Profile, wanted: Mode, planned: tuple[Mode, ...]) -> tuple[str, ...]:
    """Return a note on the call modes that AUTO left out."""
    if wanted is not Mode.AUTO or planned != (Mode.IN_PLACE,):
        return ()
    note = (
        f"a file of {profile.name} serves one mode of the call and this one is for in-place "
        "calls; give a directory to --output to get both, or --mode out-of-place"
    )
    return (note,)
