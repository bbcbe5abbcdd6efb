"""A job that loads a bundle, as the runtimes' contract says; shares no code with the package.

`msccl` reads a list of files, or a config that registers them; the other two read every file
of a directory (contract 1.1 to 1.4).
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

REQUIRED = {
    "msccl": ("name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace"),
    "directory": (
        *("proto", "nchannels", "nchunksperloop", "ngpus", "coll"),
        *("inplace", "outofplace", "minBytes", "maxBytes"),
    ),
}
SPELLINGS = {"msccl": {"reduce-scatter": "reduce_scatter"}, "rccl": {}, "msccl-executor": {}}
PER_RANK = ("allgather", "reducescatter", "reduce_scatter", "alltoall")


@dataclass(frozen=True)
class Call:
    """A call of a collective; `elements` over all ranks where the contract counts so."""

    collective: str
    elements: int
    element_bytes: int
    in_place: bool

    @property
    def bytes(self):
        return self.elements * self.element_bytes


def environment_of(bundle: Path) -> dict[str, str]:
    """Return what env.sh sets, read by a shell in another folder."""
    command = ["bash", "-c", f'. "{bundle / "env.sh"}" && env -0']
    shown = subprocess.run(
        command, check=True, capture_output=True, cwd="/", env={"PATH": "/bin:/usr/bin"}
    )
    return dict(entry.split("=", 1) for entry in shown.stdout.decode().split("\0") if entry)


def header(path: Path, required) -> dict[str, str]:
    root = ET.parse(path).getroot()
    assert root.tag == "algo"
    missing = [name for name in required if name not in root.attrib]
    assert not missing, f"{path} lacks {missing}: nothing would be loaded"
    return dict(root.attrib)


class Msccl:
    """microsoft/msccl: at most four files, in order, the largest size exclusive and finite."""

    def __init__(self, bundle: Path, ranks: int, *, config: bool = False) -> None:
        found = environment_of(bundle)
        assert "MSCCL" in found["NCCL_ALGO"], "allreduce would not use the files"
        listed = [Path(item) for item in found["MSCCL_XML_FILES"].split(":") if item]
        headers = {path: header(path, REQUIRED["msccl"]) for path in listed}
        assert all(h["ngpus"] == str(ranks) for h in headers.values())
        self.entries = [
            (path, int(h["minBytes"]), int(h["maxBytes"]), h) for path, h in headers.items()
        ]
        if config:
            (document,) = bundle.glob("*.xml")
            root = ET.parse(document).getroot()
            assert root.tag == "msccl_algos"
            self.entries = []
            for load in root:
                assert load.tag == "load"
                path = bundle / load.attrib["path"]
                assert load.attrib["proto"] == headers[path]["proto"]
                limits = int(load.attrib["minbytes"]), int(load.attrib["maxbytes"])
                self.entries.append((path, *limits, headers[path]))
        assert len(self.entries) <= 4

    def pick(self, call: Call) -> Path | None:
        """Return the first file that fits; the others are never looked at."""
        name = SPELLINGS["msccl"].get(call.collective, call.collective)
        for path, least, most, head in self.entries:
            in_bytes = name in ("allgather", "broadcast")
            total = call.bytes if in_bytes else call.elements
            fits = least <= call.bytes < most and total % int(head["nchunksperloop"]) == 0
            if head["coll"] == name and fits and head["inplace"] == str(int(call.in_place)):
                return path
        return None


class Directory:
    """The executor and RCCL: every file of a directory; one bad file disables all."""

    def __init__(self, bundle: Path, ranks: int) -> None:
        folder = Path(environment_of(bundle)["MSCCL_ALGO_DIR"])
        assert all(entry.is_file() for entry in os.scandir(folder))
        files = sorted(folder.iterdir())
        self.headers = {path: header(path, REQUIRED["directory"]) for path in files}
        assert all(h["ngpus"] == str(ranks) for h in self.headers.values())

    def pick(self, call: Call) -> Path | None:
        """Return the file that fits; RCCL's order is that of the disk, so there is only one."""
        mode = "inplace" if call.in_place else "outofplace"
        fitting = [
            path
            for path, head in self.headers.items()
            if head["coll"] == call.collective.replace("-", "")
            and head[mode] == "1"
            and int(head["minBytes"]) <= call.bytes
            and (head["maxBytes"] == "0" or call.bytes <= int(head["maxBytes"]))
            and call.elements % int(head["nchunksperloop"]) == 0
        ]
        assert len(fitting) <= 1, f"{fitting} overlap at {call.bytes} bytes"
        return fitting[0] if fitting else None


def job(runtime: str, bundle: Path, ranks: int) -> Msccl | Directory:
    """Return the loader of a runtime."""
    return Msccl(bundle, ranks) if runtime == "msccl" else Directory(bundle, ranks)
