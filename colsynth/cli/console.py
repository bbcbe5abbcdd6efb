"""The console of answers and progress: rich's, safe from control characters in outside text."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from colsynth.text import printable


class SafeConsole(Console):
    """A console that escapes the control characters of every text.

    Colours are put in later, by rich itself.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as rich would, with control characters escaped."""
        return super().render_str(printable(text, keep="\n"), **options)
