"""A bundle as a directory: schedules, env.sh, the runtime's config, and a manifest.

Schedules lie in a folder that holds nothing else, since runtimes that search a directory read
every file of it (contract 1.2). All is written beside its place first, checked there as the
runtime would find it, and then moved as a whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from colsynth.errors import Diagnostic, InputError
from colsynth.runtimes.environment import variables
from colsynth.runtimes.profile import Profile
from colsynth.tuning.bundle import Bundle, TunedFile
from colsynth.tuning.describe import FOLDER, FORMAT, manifest_of, sha256

MANIFEST, ENV, JOURNAL = "manifest.json", "env.sh", "journal.jsonl"


def journal_of(place: Path) -> Path:
    """Return the file in which what was measured for a bundle is kept until it is written."""
    return _draft_folder(place) / JOURNAL


def forget(place: Path) -> None:
    """Remove the work in progress for a bundle, where there is nothing to go on with."""
    shutil.rmtree(_draft_folder(place), ignore_errors=True)


def _draft_folder(place: Path) -> Path:
    """Return the folder beside a bundle where work in progress is kept."""
    whole = place.absolute()
    return whole.with_name(f".{whole.name}.partial")


def refuse_to_replace(place: Path, force: bool) -> None:
    """Refuse, before any work, a place that a bundle could not take after it.

    Raises
    ------
    InputError
        CS207 where something stands there: a bundle gives way to `force`, an empty folder
        to everybody, anything else to nobody.
    """
    if place.is_symlink() and not place.exists():
        advice = "it is a link that leads nowhere; remove it, or name another place"
        raise InputError(Diagnostic("CS207", f"{place} exists", help=advice))
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    ours = _is_bundle(place)
    if not (ours and force):
        advice = "--force replaces it" if ours else "it is no bundle of ours; name another place"
        raise InputError(Diagnostic("CS207", f"{place} exists", help=advice))


def _is_bundle(place: Path) -> bool:
    try:
        manifest = json.loads((place / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT


def publish(bundle: Bundle, place: Path) -> None:
    """Write a bundle to its place, whole or not at all, and forget the work in progress.

    Parameters
    ----------
    bundle : Bundle
    place : Path
        Nothing, an empty folder, or a bundle that is replaced.

    Raises
    ------
    InputError
        CS208 when the system refuses; CS504 where the runtime would choke on the files.
    """
    draft = _draft_folder(place)
    try:
        whole = draft / "bundle"
        shutil.rmtree(whole, ignore_errors=True)
        _write(bundle, whole)
        _move(whole, place.absolute(), draft / "replaced")
        forget(place)
    except OSError as fault:
        notes = (fault.strerror or str(fault),)
        raise InputError(Diagnostic("CS208", f"cannot write {place}", notes=notes)) from fault


def _write(bundle: Bundle, whole: Path) -> None:
    """Write everything below a folder, the manifest last."""
    folder = whole / FOLDER
    folder.mkdir(parents=True)
    for file in bundle.files:
        (folder / file.name).write_bytes(file.artefact.data)
    beside = {ENV: _env(bundle, whole)}
    if bundle.profile.config is not None and bundle.files:
        beside[f"{bundle.profile.config}.xml"] = _config(bundle.profile, bundle.files)
    for name, text in beside.items():
        (whole / name).write_text(text, encoding="utf-8")
    manifest = {
        **manifest_of(bundle),
        "beside": {name: sha256(text.encode()) for name, text in beside.items()},
    }
    text = json.dumps(manifest, indent=2)
    (whole / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def _env(bundle: Bundle, whole: Path) -> str:
    """Return a script that makes a job use the files, wherever the bundle lies.

    The variables are those for the files as they lie now, which checks them; only then is
    the folder made one that the script finds.
    """
    head = (
        "# Read this in the environment of every rank, with bash or zsh: . env.sh\n"
        "# Other shells need COLSYNTH_BUNDLE set to the absolute path of this folder.\n"
        'COLSYNTH_BUNDLE="${COLSYNTH_BUNDLE:-'
        '$(CDPATH= cd -- "$(dirname -- "${BASH_SOURCE:-$0}")" && pwd)}"\n'
    )
    if not bundle.files:
        return f"{head}# The library serves all sizes itself: there is nothing to set.\n"
    paths = [whole / FOLDER / file.name for file in bundle.files]
    lines = (
        f'export {name}="{_relocatable(value, whole)}"\n'
        for name, value in variables(paths, bundle.profile)
    )
    return head + "".join(lines) + _about_config(bundle.profile)


def _relocatable(value: str, whole: Path) -> str:
    """Return a value for double quotes; file names and values of profiles need no escapes."""
    return value.replace(str(whole.absolute()), "$COLSYNTH_BUNDLE")


def _about_config(profile: Profile) -> str:
    if profile.config is None:
        return ""
    name = f"{profile.config}.xml"
    return (
        f"# {name} says the same as MSCCL_XML_FILES; use one of the two. Its paths are relative:\n"
        f'# sed "s|path=\\"|&$COLSYNTH_BUNDLE/|" "$COLSYNTH_BUNDLE/{name}" > /tmp/{name}\n'
        f"# export MSCCL_CONFIG=/tmp/{name}; unset MSCCL_XML_FILES\n"
    )


def _config(profile: Profile, files: Sequence[TunedFile]) -> str:
    """Return the file that lists schedules with their ranges (contract 1.1: lower case)."""
    loads = (
        "  <load"
        + "".join(f' {name}="{value}"' for name, value in _load(profile, file).items())
        + "/>\n"
        for file in files
    )
    return f"<{profile.config}>\n{''.join(loads)}</{profile.config}>\n"


def _load(profile: Profile, file: TunedFile) -> Mapping[str, object]:
    """Return the attributes of one entry; the largest size is exclusive."""
    return {
        "path": f"{FOLDER}/{file.name}",
        "minbytes": file.min_bytes,
        "maxbytes": file.max_bytes + int(profile.exclusive_max),
        "proto": file.candidate.protocol,
    }


def _move(whole: Path, place: Path, aside: Path) -> None:
    """Put a folder in its place; what stood there stands again where that fails."""
    shutil.rmtree(aside, ignore_errors=True)
    if place.exists() and any(place.iterdir()):
        place.rename(aside)
    try:
        whole.rename(place)
    except OSError:
        if aside.exists():
            with suppress(OSError):
                aside.rename(place)
        raise
