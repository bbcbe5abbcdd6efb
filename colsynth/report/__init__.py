"""One page that shows a schedule: where the cut is, what moves when, and what limits it.

`machine` places the nodes of a topology, `schedule` replays a program, `timeline` lays out when
threadblocks and links are busy, `charts` describes plots for Vega-Lite, and `page` puts plain
values, scripts and styles into one HTML file that needs no network.
"""

from colsynth.report.machine import describe_machine, link_losses
from colsynth.report.page import check_installed, heading, render
from colsynth.report.schedule import describe_schedule
from colsynth.report.timeline import describe_load

__all__ = [
    "check_installed",
    "describe_load",
    "describe_machine",
    "describe_schedule",
    "heading",
    "link_losses",
    "render",
]
