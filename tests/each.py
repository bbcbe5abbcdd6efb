"""Many small cases of one law as one test: pytest takes longer for a test than for such a case."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature

MOST_TOLD = 5
"""Faults after which the remaining cases are left out."""


def each(name: str, values: Iterable[object]) -> Callable[[Callable[..., None]], object]:
    """Return a decorator like ``pytest.mark.parametrize``, but for one test of all values.

    Every fault says for which value it is. Fixtures are made once, so this is for tests that
    leave them as they are.
    """
    listed = list(values)
    assert listed, f"no values of {name}"

    def decorate(test: Callable[..., None]) -> object:
        @wraps(test)
        def all_of_them(**given: object) -> None:
            faults = []
            for value in listed:
                try:
                    test(**given, **{name: value})
                except Exception as fault:  # noqa: BLE001 - whatever it is, it is told
                    fault.add_note(f"{name} = {value!r:.300}")
                    faults.append(fault)
                    if len(faults) == MOST_TOLD:
                        break
            if len(faults) == 1:
                raise faults[0]
            if faults:
                raise ExceptionGroup(f"{test.__name__} fails for several {name}", faults)

        whole = signature(test)
        rest = [item for item in whole.parameters.values() if item.name != name]
        all_of_them.__signature__ = whole.replace(parameters=rest)
        return all_of_them

    return decorate
