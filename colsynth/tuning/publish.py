"""A bundle as a directory: schedules, env.sh, the runtime's config, and a manifest.

Schedules lie in a folder that holds nothing else, since runtimes that search a directory read
every file of it (contract 1.2). All is written beside its place first, checked there as the
runtime would find it, and then moved as a whole.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from colsynth import reading
from colsynth.errors import InputError
from colsynth.model import Collective
from colsynth.runtimes.environment import BUNDLE, variables
from colsynth.runtimes.plans.register import SCRIPT, default_names, script
from colsynth.runtimes.profile import Profile
from colsynth.tuning.bundle import Bundle, TunedFile
from colsynth.tuning.describe import FOLDER, FORMAT, manifest_of, sha256
from colsynth.writing import discard, exists, put, write_folder

CACHE = "cache"
"""What ``MSCCLPP_CACHE_DIR`` may be set to."""
MANIFEST, ENV, JOURNAL = "manifest.json", "env.sh", "journal.jsonl"


def journal_of(place: Path) -> Path:
    """Return the file in which what was measured for a bundle is kept until it is written."""
    whole = place.absolute()
    return whole.with_name(f".{whole.name}.partial") / JOURNAL


def forget(place: Path) -> None:
    """Remove the work in progress for a bundle, unless another process goes on with it."""
    discard(journal_of(place))


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
        raise exists(place, advice)
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    ours = _is_bundle(place)
    if not (ours and force):
        advice = "--force replaces it" if ours else "it is no bundle of ours; name another place"
        raise exists(place, advice)


@dataclass(frozen=True, slots=True)
class _Manifest:
    """What every manifest says, among other things."""

    format: str


def _is_bundle(place: Path) -> bool:
    try:
        data = reading.read_whole(place / MANIFEST, reading.MANIFEST, "CS215")
        return reading.parse_json(data, _Manifest).format == FORMAT
    except (InputError, ValueError):
        return False


def publish(bundle: Bundle, place: Path, *, replace: bool = False) -> None:
    """Write a bundle to its place, whole or not at all, and forget the work in progress.

    Parameters
    ----------
    bundle : Bundle
    place : Path
        Nothing or an empty folder.
    replace : bool
        Whether a folder that stands there is replaced.

    Raises
    ------
    InputError
        CS207 where a folder shall not give way; CS208 when the system refuses; CS504 where the
        runtime would choke on the files.
    """
    write_folder(place, partial(_write, bundle), replace=replace)
    forget(place)


def _write(bundle: Bundle, whole: Path) -> None:
    """Write everything below a folder, the manifest last."""
    folder = whole / FOLDER
    folder.mkdir()
    for file in bundle.files:
        put(folder / file.name, file.artefact.data)
    told = manifest_of(bundle)
    identity = sha256(json.dumps(told).encode())
    beside = {ENV: _env(bundle, whole, identity)}
    if bundle.profile.config is not None and bundle.files:
        beside[f"{bundle.profile.config}.xml"] = _config(bundle.profile, bundle.files)
    if bundle.profile.plans and not bundle.profile.directory and bundle.files:
        beside[SCRIPT] = script()
        defaults = _defaults(bundle)
        if defaults:
            (whole / CACHE / "default").mkdir(parents=True)
        for name, file in defaults.items():
            put(whole / CACHE / "default" / name, file.artefact.data)
    for name, text in beside.items():
        put(whole / name, text.encode())
    manifest = {
        **told,
        "identity": identity,
        "beside": {name: sha256(text.encode()) for name, text in beside.items()},
    }
    text = json.dumps(manifest, indent=2)
    put(whole / MANIFEST, f"{text}\n".encode())


_HEAD = """\
# Source this in the environment of every rank, with bash or zsh: . env.sh
# Other shells need COLSYNTH_BUNDLE set to the absolute path of this folder.
# The identity tells this bundle from others, where a shell does not say which file it reads.
for COLSYNTH_HERE in "$(CDPATH= cd -- "$(dirname -- "${BASH_SOURCE:-$0}")" && pwd)" \\
  "${COLSYNTH_BUNDLE:-}"; do
  if grep -q "{identity}" "$COLSYNTH_HERE/{manifest}" 2>/dev/null; then break; fi
  COLSYNTH_HERE=
done
if [ -z "$COLSYNTH_HERE" ]; then
  echo "env.sh: cannot find its bundle: source the file that lies in it, with bash or zsh;" >&2
  echo "env.sh: in another shell, set COLSYNTH_BUNDLE to its absolute path first" >&2
  unset COLSYNTH_HERE
  return 1 2>/dev/null || exit 1
fi
{check}# A job uses one bundle: that of the last env.sh. What an earlier one has set is unset.
if [ -n "${COLSYNTH_IN_USE:-}" ] && [ "$COLSYNTH_IN_USE" != "$COLSYNTH_HERE" ]; then
  echo "env.sh: $COLSYNTH_HERE replaces $COLSYNTH_IN_USE" >&2
fi
eval "unset COLSYNTH_IN_USE ${COLSYNTH_IN_USE_NAMES:-}"
"""
_UNLISTABLE = """\
case "$COLSYNTH_HERE" in *:*)
  echo "env.sh: {runtime} splits its list at ':', which is part of $COLSYNTH_HERE" >&2
  echo "env.sh: move the folder to another place" >&2
  unset COLSYNTH_HERE
  return 1 2>/dev/null || exit 1
esac
"""
"""As `require_listable` says it where a bundle is written; this one may have been moved."""
_UNREADABLE = """\
for COLSYNTH_FILE in {files}; do
  if [ ! -r "$COLSYNTH_HERE/{folder}/$COLSYNTH_FILE" ]; then
    echo "env.sh: cannot read $COLSYNTH_HERE/{folder}/$COLSYNTH_FILE" >&2
    echo "env.sh: the bundle is not whole; copy or make it again" >&2
    unset COLSYNTH_HERE COLSYNTH_FILE
    return 1 2>/dev/null || exit 1
  fi
done
unset COLSYNTH_FILE
"""
"""Jobs would run without the file, and some runtimes say nothing."""

_TAIL = """\
export COLSYNTH_IN_USE="$COLSYNTH_HERE" COLSYNTH_IN_USE_NAMES="{names}"
unset COLSYNTH_HERE
"""


def _env(bundle: Bundle, whole: Path, identity: str) -> str:
    """Return a script that makes a job use the files, wherever the bundle of `identity` lies.

    The variables are those for the files as they lie now, which checks them; only then is
    the folder made one that the script finds.
    """
    paths = [whole / FOLDER / file.name for file in bundle.files]
    values = variables(paths, bundle.profile) if paths else ()
    if bundle.profile.rounds:  # they read the manifest, which lists the files and their checksums
        values = ((BUNDLE, str(whole.absolute())),)
    lines = "".join(f'export {name}="{_relocatable(value, whole)}"\n' for name, value in values)
    if not values:
        lines = "# The library serves all sizes itself: there is nothing to set.\n"
    about = _about_config(bundle) if paths else ""
    listed = values and not bundle.profile.directory
    check = _UNLISTABLE.replace("{runtime}", bundle.profile.name) if listed else ""
    if bundle.files:
        files = " ".join(file.name for file in bundle.files)
        check += _UNREADABLE.replace("{files}", files).replace("{folder}", FOLDER)
    head = _HEAD.replace("{identity}", identity).replace("{manifest}", MANIFEST)
    head = head.replace("{check}", check)
    return head + lines + about + _TAIL.format(names=" ".join(name for name, _ in values))


def _relocatable(value: str, whole: Path) -> str:
    """Return a value for double quotes; file names and values of profiles need no escapes."""
    return value.replace(str(whole.absolute()), "$COLSYNTH_HERE")


def _defaults(bundle: Bundle) -> Mapping[str, TunedFile]:
    """Return what MSCCL++ may load by itself, by the names that it looks for (contract 9.3).

    All are for in-place calls, since the mode of the first decides for all.
    """
    topology = bundle.cases[0].problem.topology
    boxes = Counter(topology.gpu_boxes)
    fit = (f for f in bundle.files if f.artefact.mode.in_place and _reaches_plans(f))
    places = zip(default_names(topology.size, list(boxes.values())), fit, strict=False)
    return {name: file for names, file in places for name in names}


def _reaches_plans(file: TunedFile) -> bool:
    """Whether calls through the NCCL interface select plans of the file's collective rightly."""
    served = (Collective.ALLREDUCE, Collective.ALLGATHER, Collective.BROADCAST)
    return file.artefact.program.header.collective in served


def _about_config(bundle: Bundle) -> str:
    profile = bundle.profile
    if profile.plans and not profile.directory:
        lines = "# The library does not read this by itself: every rank imports the script.\n"
        if _defaults(bundle):
            lines += "# Without Python, the library loads some of them, and aborts calls that 16\n"
            lines += "# bytes times their chunks do not divide, if it finds them here:\n"
            lines += f'# export MSCCLPP_CACHE_DIR="$COLSYNTH_IN_USE/{CACHE}"\n'
        return f'{lines}export PYTHONPATH="$COLSYNTH_HERE${{PYTHONPATH:+:$PYTHONPATH}}"\n'
    if profile.config is None:
        return ""
    name = f"{profile.config}.xml"
    return (
        f"# {name} says the same as MSCCL_XML_FILES; use one of the two. Its paths are relative:\n"
        f'# sed "s|path=\\"|&$COLSYNTH_IN_USE/|" "$COLSYNTH_IN_USE/{name}" > /tmp/{name}\n'
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
        "proto": file.plan.protocol,
    }
