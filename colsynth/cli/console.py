"""The console of answers and progress: rich's, which no text from outside can command."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from colsynth.text import printable


class SafeConsole(Console):
    """A console that spells out the control characters of every text it is given.

    Colours are put in later, by rich itself.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as rich would, without what a terminal executes."""
        return super().render_str(printable(text, keep="\n"), **options)
