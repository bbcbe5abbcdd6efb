"""One page that shows a schedule: where the cut is, what moves when, and what limits it.

`machine` places the nodes of a topology, `schedule` replays a program, `timeline` lays out when
threadblocks and links are busy, `charts` describes plots for Vega-Lite, and `page` puts plain
values, scripts and styles into one HTML file that needs no network. `plot` makes the pictures that
`--plot` and the benchmarks write.
"""

from colsynth.report.machine import describe_machine, link_losses
from colsynth.report.page import check_installed, heading, render
from colsynth.report.plot import Series, exponent, picture, plot
from colsynth.report.schedule import describe_schedule
from colsynth.report.timeline import describe_load

__all__ = [
    "Series",
    "check_installed",
    "describe_load",
    "describe_machine",
    "describe_schedule",
    "exponent",
    "heading",
    "link_losses",
    "picture",
    "plot",
    "render",
]
