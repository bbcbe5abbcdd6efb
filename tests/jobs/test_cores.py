"""The cores that a process may use, in a container too."""

import os

import pytest

from colsynth.jobs import cores


@pytest.fixture
def container(tmp_path, monkeypatch):
    """Return a function that writes the files of a container's limits, on eight cores."""
    monkeypatch.setattr(cores, "GROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)

    def limited(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(f"{text}\n")

    return limited


@pytest.mark.parametrize(
    ("quota", "usable"),
    [
        ("max 100000", 8),
        ("400000 100000", 4),
        ("199999 100000", 1),
        ("50000 100000", 1),
        ("1600000 100000", 8),
        ("", 8),
        ("none of ours", 8),
    ],
)
def test_a_container_has_the_whole_cores_of_its_quota(quota, usable, container):
    container({"cpu.max": quota})
    assert cores.usable_cores() == usable


@pytest.mark.parametrize(("quota", "usable"), [("-1", 8), ("250000", 2), ("0", 1)])
def test_so_has_one_of_an_older_kernel(quota, usable, container):
    container({"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_period_us": "100000"})
    assert cores.usable_cores() == usable


@pytest.mark.usefixtures("container")
def test_without_a_container_it_has_those_it_may_run_on(monkeypatch):
    assert cores.usable_cores() == 8
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores.usable_cores() == os.cpu_count()
