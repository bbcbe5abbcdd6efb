"""``colsynth warm``: compile all kernels now, for images and installations."""

from __future__ import annotations

from time import perf_counter

from colsynth.cli.progress import progress


def warm() -> None:
    """Compile all kernels now, so that later runs start at once.

    Run it once after installing, for example when an image is built. Where the package's
    folder can be written, all users of the installation profit.
    """
    start = perf_counter()
    with progress("kernels compiled so far are kept") as show:
        from colsynth import api

        api.warm(show)
    print(f"all kernels are compiled ({perf_counter() - start:.0f} s)")
