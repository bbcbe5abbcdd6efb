"""Changes that keep a file's meaning keep its verdict."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET

import pytest

from colsynth.runtimes import profile, write
from colsynth.verify import verify_bytes
from tests.verify.programs import ALL, doubling_allgather, ring_allreduce


def _shuffle_elements(root, rng):
    for element in (root, *root):
        children = list(element)
        rng.shuffle(children)
        element[:] = children


def _renumber_channels(root, rng):
    channels = list(range(8))
    rng.shuffle(channels)
    root.set("nchannels", "8")
    for tb in root.iter("tb"):
        tb.set("chan", str(channels[int(tb.get("chan"))]))


def _renumber_threadblocks(root, rng):
    for gpu in root:
        ids = list(range(len(gpu)))
        rng.shuffle(ids)
        for tb in gpu:
            tb.set("id", str(ids[int(tb.get("id"))]))
        for step in gpu.iter("step"):
            if step.get("depid") != "-1":
                step.set("depid", str(ids[int(step.get("depid"))]))


def _reorder_attributes(root, rng):
    for element in root.iter():
        pairs = list(element.items())
        rng.shuffle(pairs)
        element.attrib.clear()
        element.attrib.update(pairs)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "change", [_shuffle_elements, _renumber_channels, _renumber_threadblocks, _reorder_attributes]
)
def test_what_does_not_matter_does_not_matter(name, change):
    root = ET.fromstring(write(ALL[name], profile("msccl-executor")))
    change(root, random.Random(name))
    # ElementTree writes a blank before "/>", which the runtimes count as an attribute.
    data = ET.tostring(root).replace(b" />", b"/>")
    assert verify_bytes(data, profile("msccl-executor"), subject=name).ok


@pytest.mark.parametrize("name", ALL)
def test_findings_do_not_depend_on_the_process(name):
    data = write(ALL[name], profile("msccl-executor"))
    first = verify_bytes(data, profile("rccl"), subject=name)
    assert verify_bytes(data, profile("rccl"), subject=name) == first


def test_large_messages_deadlock_where_small_ones_do_not():
    """Recursive doubling sends four chunks before it receives (contract 4.6)."""
    executor = profile("msccl-executor")
    small = write(doubling_allgather(8, max_bytes=8 * 2**18), executor)
    large = write(doubling_allgather(8, max_bytes=None), executor)
    assert verify_bytes(small, executor, subject="small").ok
    found = {f.rule for f in verify_bytes(large, executor, subject="large").errors}
    assert found == {"K01"}


def test_a_ring_needs_two_slots():
    report = verify_bytes(
        write(ring_allreduce(4), profile("msccl-executor")), profile("msccl-executor"), subject=""
    )
    assert [f.rule for f in report.findings] == ["K02"]
    assert report.findings[0].message.startswith("the file is fine in this respect: it finishes")
