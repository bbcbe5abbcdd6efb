"""Names that are nearly right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth import api
from colsynth.errors import InputError, close_names, did_you_mean, same_name
from colsynth.model import Collective
from colsynth.pipeline.registry import ALGORITHMS, DEFAULT
from colsynth.topology import presets

COLLECTIVES = [item.value for item in Collective]
LISTS = [
    COLLECTIVES,
    list(ALGORITHMS),
    list(DEFAULT.names()),
    [preset.name for preset in presets()],
]


def styles(name):
    """Return the ways in which people write the words of a name."""
    words = name.split("-")
    yield from ("_".join(words), " ".join(words), "".join(words), name.upper(), name.title())
    yield "".join(word.title() for word in words)


@given(st.sampled_from(LISTS), st.data())
def test_no_style_of_a_name_is_taken_for_another_name(names, data):
    name = data.draw(st.sampled_from(names))
    for text in styles(name):
        assert same_name(text, names) == name
        assert close_names(text, names) == (name,)
        assert did_you_mean(text, names).startswith(f"did you mean {name!r}?")


@given(st.sampled_from(LISTS), st.data())
def test_what_begins_a_name_finds_a_name_that_it_begins(names, data):
    name = data.draw(st.sampled_from(names))
    start = name[: data.draw(st.integers(2, len(name)))].upper()
    found = close_names(start, names)
    plain = [x.replace("-", "") for x in found]
    assert any(x.startswith(start.lower().replace("-", "")) for x in plain)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all", ("alltoall", "allgather", "allreduce")),
        ("reduce-scater", ("reduce-scatter",)),
        ("Gather", ("gather",)),
        ("bcast", ("broadcast",)),
        ("x", ()),
        ("", ()),
        ("zzz", ()),
    ],
)
def test_the_nearest_collectives(text, names):
    assert close_names(text, COLLECTIVES) == names


def test_any_style_of_a_collective_is_accepted():
    ring = api.load_topology("ring:4")
    for name in COLLECTIVES[:-1]:
        for text in styles(name):
            assert api.make_problem(ring, text).collective is Collective(name)
    with pytest.raises(InputError, match="did you mean 'allreduce'"):
        api.make_problem(ring, "allreduc")
