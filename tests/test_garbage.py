"""The pause of the search for cycles ends as it began, whatever happens within."""

import gc

import pytest

from colsynth.garbage import no_cycles


@pytest.fixture(params=[True, False])
def searched(request):
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_the_search_is_paused_and_is_afterwards_as_it_was(searched):
    with no_cycles():
        assert not gc.isenabled()
        with no_cycles():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() == searched


def test_so_it_is_after_an_error(searched):
    with pytest.raises(ValueError, match="anything"), no_cycles():
        raise ValueError("anything")
    assert gc.isenabled() == searched
