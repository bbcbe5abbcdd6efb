"""JSON from outside, with the place of what is wrong."""

from __future__ import annotations

import json
from typing import Any

from colsynth.topology.importers.machine import Source, refusal


def looks_like_json(text: str, *words: str) -> bool:
    """Whether a text begins as JSON does and holds all of some words."""
    return text.lstrip()[:1] in ("{", "[") and all(word in text for word in words)


def parse_json(source: Source) -> Any:
    """Return what a JSON text says; raise InputError (CS152) at the line and column."""
    try:
        return json.loads(source.text)
    except json.JSONDecodeError as fault:
        at = source.span(fault.lineno, fault.colno)
        raise refusal("the JSON is not well-formed", at, fault.msg) from None
    except (ValueError, RecursionError) as fault:
        reason = "nested too deeply" if isinstance(fault, RecursionError) else str(fault)
        raise refusal("the JSON cannot be read", source.span(1), reason) from None
