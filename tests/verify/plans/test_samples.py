"""Plans of others get the verdicts that running them gave (where the samples are present)."""

from pathlib import Path

import pytest

from colsynth.runtimes import profile
from colsynth.verify import verify_bytes

SAMPLES = Path("/work/shared/samples/mscclpp")
RULES = {
    "65_ops": "P03",
    "LL_without_double_scratch": "P10",
    "credits4_depth2": "P10",
    "flush_without_dst_buff": "P10",
    "get_index_differs": "P04",
    "no_start_handshake": "P10",
    "nops_dropped": "P10",
    "pws_on_memory_hangs": "P04",
    "pwsf_wrong_up_to_0.9.0": "P10",
}
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not here")


def verified(path, runtime="mscclpp"):
    return verify_bytes(path.read_bytes(), profile(runtime), subject=path.name)


def test_right_plans_are_right_and_each_fault_breaks_its_rule():
    good, bad = sorted(SAMPLES.glob("*.json")), sorted((SAMPLES / "bad").glob("*.json"))
    assert len(good) >= 8
    assert {path.stem for path in bad} == set(RULES)
    for path in good:
        assert verified(path).ok, path.name
        assert dict(verified(path).facts)["content"] == "executed symbolically"
    for path in bad:
        assert {finding.rule for finding in verified(path).errors} == {RULES[path.stem]}


def test_versions_differ_where_the_executors_do():
    flushed = SAMPLES / "bad" / "pwsf_wrong_up_to_0.9.0.json"
    assert not verified(flushed, "mscclpp@0.8").ok
    assert verified(flushed, "mscclpp@0.10").ok
    newer = SAMPLES / "upstream_dsl_allreduce_multinode_LL_4ranks_2nodes.json"
    assert {finding.rule for finding in verified(newer, "mscclpp@0.8").errors} == {"P17"}
