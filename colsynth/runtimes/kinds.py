"""What a file is that no runtime reads as a schedule, for messages."""

from __future__ import annotations

_OURS = {
    b'"colsynth bundle"': "the manifest of a bundle of 'colsynth tune'",
    b'"colsynth survey"': "the table of a survey of 'colsynth survey'",
}
"""What JSON files of colsynth are that hold no schedule, by the format that they name."""


def foreign(data: bytes) -> str | None:
    """Return what a file is that is no schedule file of any runtime, None where it may be one."""
    start = data[:512].lstrip()
    if not start:
        return "empty"
    if start.startswith(b"PK\x03\x04"):
        return "a timed schedule of 'colsynth synthesize', or another zip file"
    if start.lower().startswith((b"<!doctype html", b"<html")):
        return "an HTML page"
    if start.startswith(b"{"):
        return next((kind for name, kind in _OURS.items() if name in start), None)
    if not start.startswith(b"<") and b"<algo" not in data:
        return "neither XML nor a JSON object"
    return None


def written_for(data: bytes) -> str | None:
    """Return what a file seems to be: xml, rounds or plan; else None."""
    start = data[:512].lstrip()
    if start.startswith(b"<"):
        return "xml"
    if start.startswith(b"{"):
        return "rounds" if b'"colsynth rounds"' in data else "plan"
    return None
