"""Logs in JSON: of nccl-tests (``-J``) and of nvbandwidth (``-j``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from colsynth.logs.log import Device, Row, Wire, number_of
from colsynth.logs.nccl_tests import Found, Measured, note_settings

_COPY = "device_to_device_memcpy_read_ce"
"""The test of nvbandwidth whose figures are of one direction, by copy engines."""


def is_nccl_tests(document: Any) -> bool:
    """Whether a JSON document is a report of nccl-tests."""
    return isinstance(document, dict) and isinstance(document.get("results"), list)


def read_report(document: dict[str, Any]) -> Found:
    """Return what a JSON report of nccl-tests says; raise ValueError, KeyError or TypeError."""
    found = Found()
    for item in (*document.get("args", ()), *document.get("env", ())):
        note_settings(found, str(item))
    for item in document.get("devices", ()):
        rank = int(item["rank"])
        found.twice += rank in found.devices
        name = str(item.get("device_info", ""))
        found.devices[rank] = Device(str(item["hostname"]), int(item["device"]), name)
    for item in document["results"]:
        for half in (item.get("out_of_place"), item.get("in_place")):
            if half is not None:
                time = number_of(half.get("time", half.get("cpu_time")))
                if time is None:
                    found.timeless.append(0)
                    continue
                row = Row(int(item["size"]), time / 1e6)
                wrong = (half.get("nwrong") or 0) > 0
                found.measured.append(Measured(row, wrong, item["redop"] != "none"))
    found.tables = 1
    return found


def is_nvbandwidth(document: Any) -> bool:
    """Whether a JSON document is a report of nvbandwidth."""
    return isinstance(document, dict) and "nvbandwidth" in document


def read_copies(document: dict[str, Any]) -> Iterator[Wire]:
    """Yield the copies of a JSON report of nvbandwidth; raise as `read_report`."""
    for test in document["nvbandwidth"]["testcases"]:
        if test["name"] == _COPY:
            yield from matrix_wires(test["bandwidth_matrix"])


def matrix_wires(rows: list[list[Any]]) -> Iterator[Wire]:
    """Yield the cells of ``GPU(row) <- GPU(column)``, GB/s, that are numbers."""
    for target, cells in enumerate(rows):
        for source, cell in enumerate(cells):
            rate = number_of(cell)
            if source != target and rate is not None:
                yield Wire("copy", rate * 1e9, (source, target))


def read_copy_text(lines: list[str]) -> Iterator[Wire]:
    """Yield the copies of what nvbandwidth prints."""
    inside, rows = False, []
    for line in lines:
        words = line.split()
        if words[:1] == ["Running"]:
            inside = _COPY in line
        is_cells = len(words) > 1 and words[0].isdigit() and not all(map(str.isdigit, words))
        if inside and is_cells:
            rows.append(list(words[1:]))
    yield from matrix_wires(rows)
