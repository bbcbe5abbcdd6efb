"""What a text on the command line is taken for, and which options it takes."""

from dataclasses import replace

import pytest

from colsynth.errors import InputError
from colsynth.topology import document, load

PAIR = """
version: 1
name: pair
nodes: [{name: a, kind: gpu}, {name: b, kind: gpu}]
links: [{from: a, to: b, bandwidth: 1 GB/s}]
"""


def code(spec, **options):
    with pytest.raises(InputError) as caught:
        load(spec, **options)
    return caught.value.diagnostic.code


def advice(spec):
    with pytest.raises(InputError) as caught:
        load(spec)
    assert caught.value.diagnostic.code == "CS120"
    return caught.value.diagnostic.help


@pytest.mark.parametrize("name", ["pair.yaml", "pair.yml", "pair.json", "pair:8.yaml"])
def test_a_known_ending_is_a_file(name, tmp_path, monkeypatch):
    (tmp_path / name).write_text(PAIR)
    monkeypatch.chdir(tmp_path)
    assert load(name).name == "pair"


def test_a_slash_is_a_file(tmp_path, monkeypatch):
    (tmp_path / "pair").write_text(PAIR)
    monkeypatch.chdir(tmp_path)
    assert load("./pair").name == "pair"
    assert advice("pair") == "write ./pair to mean the file of this name"


def test_a_word_that_is_no_topology_gets_the_advice_that_fits():
    assert advice("DGX-A100").startswith("did you mean 'dgx-a100'?")
    assert advice("a100").startswith("did you mean 'dgx-a100'?")
    assert advice("Ring") == "give its size, such as ring:8"
    assert advice("dgx-a10").startswith("did you mean 'dgx-a100'?")
    assert advice("torus") == "give its size, such as torus:4x4x4"


def test_a_byte_order_mark_is_no_content(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + PAIR.encode())
    assert load(str(path)).name == "pair"


def test_a_missing_file_and_a_directory(tmp_path):
    assert code(str(tmp_path / "none.yaml")) == "CS101"
    assert code(str(tmp_path)) == "CS101"


def test_a_huge_file_is_refused_unparsed(tmp_path, monkeypatch):
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR)
    small = replace(document.DESCRIPTION, most=len(PAIR) - 1)
    monkeypatch.setattr(document, "DESCRIPTION", small)
    assert code(str(path)) == "CS125"


def test_flat_files_take_no_options(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR)
    assert code(str(path), nodes=1) == "CS124"
    assert code(str(path), settings={"x": "1"}) == "CS124"
    assert code(str(path), bandwidth="1 GB/s") == "CS124"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"nodes": 0}, "CS126"),
        ({"nodes": -2}, "CS126"),
        ({"nodes": 10**12}, "CS125"),
        ({"bandwidth": "1 GB/s"}, "CS124"),
        ({"latency": "1 us"}, "CS124"),
        ({"settings": {"nvlnk": "20 GB/s"}}, "CS122"),
        ({"settings": {"nvlink": "20"}}, "CS110"),
        ({"settings": {"nvlink": "0 GB/s"}}, "CS111"),
        ({"settings": {"nvlink-latency": "20 GB/s"}}, "CS123"),
        ({"settings": {"planes": "2 GB/s"}}, "CS123"),
        ({"settings": {"planes": "0"}}, "CS123"),
        ({"settings": {"planes": "²"}}, "CS138"),
        ({"settings": {"nics": "3"}}, "CS118"),
    ],
)
def test_options_that_do_not_fit_a_preset(options, expected):
    assert code("dgx-a100", **options) == expected


def test_a_bad_setting_is_named():
    with pytest.raises(InputError) as caught:
        load("dgx-a100", settings={"nvlnk": "20 GB/s"})
    assert str(caught.value.diagnostic.span) == "--set nvlnk=20 GB/s"
    assert "did you mean 'nvlink'?" in caught.value.diagnostic.help


def test_parallel_links_of_a_flat_file_add_up(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_text(PAIR.replace("bandwidth:", "count: 3, bandwidth:"))
    (tmp_path / "plain.yaml").write_text(PAIR)
    single = load(str(tmp_path / "plain.yaml")).links
    assert [x.bandwidth for x in load(str(path)).links] == [3 * x.bandwidth for x in single]


def test_a_path_of_python_is_taken_as_its_text(tmp_path):
    (tmp_path / "pair.yaml").write_text(PAIR)
    assert load(tmp_path / "pair.yaml") == load(str(tmp_path / "pair.yaml"))
