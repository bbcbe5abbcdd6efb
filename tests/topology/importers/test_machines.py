"""Files of real machines, where they are present: what each must become is data (samples.yaml)."""

from pathlib import Path

import pytest
import yaml

from colsynth.errors import InputError
from colsynth.topology import load
from colsynth.topology.importers import Request, import_topology
from colsynth.topology.importers.affinity import clusters, useful_nics
from colsynth.topology.importers.fabric import Fabric
from colsynth.topology.importers.formats import detect
from colsynth.topology.importers.machine import SWITCHED, Machine
from colsynth.topology.importers.run import decoded

SAMPLES = Path("/work/shared/samples/topology")
EXPECTED = yaml.safe_load(Path(__file__).with_name("samples.yaml").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_becomes_what_its_manifest_says(name):
    path = SAMPLES / name
    if not path.exists():
        pytest.skip("the samples are not here")
    expected = EXPECTED[name]
    request = Request(box=expected.get("box"))
    if "refused" in expected:
        with pytest.raises(InputError) as caught:
            import_topology([(path.name, path.read_bytes())], request)
        found = caught.value.diagnostic
        assert found.code == expected["refused"]
        assert expected["phrase"] in found.phrase
        assert found.span.line >= 1
        return
    done = import_topology([(path.name, path.read_bytes())], request)
    assert load("again", data=done.text.encode()) == done.topology
    assert done.topology.size == expected["gpus"]
    assert sorted({x.code for x in done.warnings}) == expected.get("warnings", [])
    assert expected.get("help", "") in " ".join(x.help or "" for x in done.warnings)
    source = decoded(path.read_bytes(), path.name)
    value = detect(source).parse(source)
    if isinstance(value, Machine):
        _check_machine(value, expected)
    elif isinstance(value, Fabric):
        _check_fabric(value, expected)


def _check_machine(machine, expected):
    size = expected["gpus"]
    rows = [[0] * size for _ in range(size)]
    switched = [0] * size
    for bond in machine.bonds:
        if bond.target == SWITCHED:
            switched[bond.source] += bond.count
        else:
            rows[bond.source][bond.target] += bond.count
    if "clique" in expected:
        assert rows == [[expected["clique"] * (i != j) for j in range(size)] for i in range(size)]
    if "matrix" in expected:
        assert rows == expected["matrix"]
    assert switched == [expected.get("switched", 0)] * size
    if "bonds" in expected:
        assert len(machine.bonds) == expected["bonds"]
    if "nics" in expected:
        assert len(machine.nics) == expected["nics"]
    rates = {float(nic.rate / 10**9) for nic in machine.nics if nic.rate and not nic.virtual}
    assert rates == ({expected["nic_gb_per_s"]} if "nic_gb_per_s" in expected else set())
    if "near" in expected:
        near = [set() for _ in range(size)]
        for cluster in clusters(machine, useful_nics(machine)[0]):
            for gpu, nic in cluster.pairs:
                near[gpu].add(machine.nics[nic].name)
        assert [sorted(names) for names in near] == expected["near"]


def _check_fabric(fabric, expected):
    assert len(fabric.hosts) == expected["hosts"]
    assert len(fabric.domains) == expected.get("domains", 0)
    if "switches" in expected:
        assert (len(fabric.switches), len(fabric.cables)) == (
            expected["switches"],
            expected["cables"],
        )
    assert {cable.count for cable in fabric.cables} <= ({2} if "twofold" in expected else {1})
    for host in fabric.hosts if "ports" in expected else ():
        leaves = {port.label: fabric.switches[port.switch] for port in host.ports}
        wanted = expected["ports"][host.name]
        assert leaves.keys() == wanted.keys()
        assert all(wanted[label] in leaf for label, leaf in leaves.items())
        assert {port.rate for port in host.ports} == {50 * 10**9}
