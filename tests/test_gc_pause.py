"""The collector is as it was after the pause, whatever happens within."""

import gc

import pytest

from colsynth.gc_pause import gc_paused


@pytest.fixture(params=[True, False])
def searched(request):
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_the_search_is_paused_and_is_afterwards_as_it_was(searched):
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() == searched


def test_so_it_is_after_an_error(searched):
    with pytest.raises(ValueError, match="anything"), gc_paused():
        raise ValueError("anything")
    assert gc.isenabled() == searched
