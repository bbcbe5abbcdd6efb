"""Measurements that tools print: nccl-tests, rccl-tests, nvbandwidth and perftest."""

from colsynth.logs.log import Device, Log, Pinned, Row, Wire
from colsynth.logs.read import read_log

__all__ = ["Device", "Log", "Pinned", "Row", "Wire", "read_log"]
