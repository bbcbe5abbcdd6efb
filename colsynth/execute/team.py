"""A threadblock of a plan: what it lists, and where its strands are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colsynth.runtimes.plans.form import Block


@dataclass
class Team:
    """Both strands of a threadblock, and where they are."""

    block: Block
    channels: dict[str, list[int]]
    remotes: dict[str, list[int]]
    round: int = 0
    here: int = 0
    at: dict[str, str] = field(default_factory=dict)

    def place(self, name: str) -> str:
        """Return which operation a strand is at."""
        return self.at.get(name, "start")


def listed(lists: Any) -> dict[str, list[int]]:
    """Return what a threadblock uses, by type of channel: numbers of its GPU."""
    found: dict[str, list[int]] = defaultdict(list)
    for one in lists:
        kind = getattr(one, "channel_type", None) or one.access_channel_type
        found[kind] += getattr(one, "channel_ids", None) or one.remote_buffer_ids
    return found
