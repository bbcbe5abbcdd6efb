"""Workers of a Dask cluster, as an executor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from colsynth.errors import Diagnostic, InputError
from colsynth.jobs.evaluation import fingerprint
from colsynth.units import plural

if TYPE_CHECKING:
    from distributed import Client

_PATIENCE, _MUSTER = 10, 30
"""Seconds in which a scheduler must answer, and have a worker: batch systems start them late."""

_NAMED = 3
"""Workers that a message names."""

_GLANCE = 1
"""Seconds between looks at the workers while no evaluation ends."""

_LOG = logging.getLogger("colsynth.jobs")

Progress = Callable[[str, int, int], None]
Versions = dict[str, str]


class Cluster(Executor):
    """An executor whose work runs on the workers of a Dask scheduler.

    Dask gives the work of a lost worker to the others.

    Parameters
    ----------
    client : distributed.Client
        Its owner closes it.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False)
        self._seen: set[str] = set()
        self._now: set[str] = set()
        self._told: tuple[Progress, str, int, int] | None = None
        self._said = ""
        self._turn, self._over = Lock(), Event()
        self._watch = Thread(target=self._follow, daemon=True)
        self._watch.start()

    def submit(self, work: Callable[..., Any], /, *values: Any, **more: Any) -> Future[Any]:
        """Send a call to the cluster."""
        sent: Future[Any] = self._executor.submit(work, *values, **more)
        return sent

    def watched(self, show: Progress) -> Progress:
        """Return a function that shows progress with the workers there are and those lost."""

        def tell(what: str, done: int, total: int) -> None:
            with self._turn:
                self._told, self._said = (show, what, done, total), self.workers()
                show(f"{what} ({self._said})", done, total)

        return tell

    def workers(self) -> str:
        """Return how many workers there are, and how many were lost."""
        if self._client.status == "running":
            self._now = set(self._client.nthreads())
        self._seen |= self._now
        lost = len(self._seen - self._now)
        there = plural(len(self._now), "worker") if self._now else "no worker left, waiting for one"
        return there + (f", {lost} lost" if lost else "")

    def close(self) -> None:
        """Stop watching the workers."""
        self._over.set()
        self._watch.join(timeout=_GLANCE)

    def _follow(self) -> None:
        """Show workers that come and go while no evaluation ends; warn where none is left."""
        while not self._over.wait(_GLANCE):
            with suppress(OSError, RuntimeError, CancelledError), self._turn:
                said = self.workers()
                if self._told is not None and said != self._said:
                    show, what, done, total = self._told
                    show(f"{what} ({said})", done, total)
                self._said = said
                if not self._now and self._client.status == "running":
                    phrase = "no worker is left; the work goes on once one joins: dask worker %s"
                    _LOG.warning(phrase, self._client.scheduler.address)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Yield the workers of a Dask scheduler, with this version of colsynth on all of them.

    Parameters
    ----------
    address : str
        Such as ``"tcp://host:8786"``.

    Raises
    ------
    InputError
        CS252: Dask is not installed. CS253: the scheduler does not answer, has no worker, or goes
        away during the work. CS254: a worker has another version. CS218: several workers ended
        during the same evaluation.
    """
    try:
        from distributed import Client
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker
    except ImportError:
        phrase = "--scheduler needs Dask, which is not installed"
        raise InputError(Diagnostic("CS252", phrase, help="pip install 'colsynth[dask]'")) from None
    _hush()
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, ImportError) as fault:
        advice = "start one with: dask scheduler; name it as tcp://HOST:8786"
        told = f"no Dask scheduler answers at {address!r}"
        raise InputError(Diagnostic("CS253", told, notes=(str(fault),), help=advice)) from None
    try:
        _check(client, address)
        cluster = Cluster(client)
        try:
            yield cluster
        finally:
            cluster.close()
    except KilledWorker as fault:
        raise _killed(fault) from None
    except (CancelledError, CommClosedError):
        raise _gone(address) from None
    finally:
        client.close(timeout=1)


def _hush() -> None:
    """Silence all loggers of Dask, which have levels of their own: we report what they would."""
    for name in logging.root.manager.loggerDict:
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _check(client: Client, address: str) -> None:
    """Refuse a cluster without workers, or with workers that have another colsynth."""
    try:
        client.wait_for_workers(1, timeout=_MUSTER)
    except TimeoutError:
        phrase = f"the Dask scheduler {address} has no worker"
        advice = f"start some: dask worker {address} --nthreads 1"
        raise InputError(Diagnostic("CS253", phrase, help=advice)) from None
    theirs: dict[str, Versions | Exception] = client.run(fingerprint, on_error="return")
    ours = fingerprint()
    notes = tuple(
        f"{worker}: {', '.join(_differences(ours, found))}"
        for worker, found in sorted(theirs.items())
        if found != ours
    )
    if notes:
        phrase = f"{plural(len(notes), 'worker')} of {address} would give other results"
        raise InputError(
            Diagnostic(
                "CS254",
                phrase,
                notes=notes[:_NAMED],
                help="install the same packages on all of them, and start them again",
            )
        )


def _differences(ours: Versions, found: Versions | Exception) -> Iterator[str]:
    """Yield what a worker has instead of ours."""
    if isinstance(found, Exception):
        yield f"colsynth cannot be used there: {found}"
        return
    for name in {**ours, **found}:
        if found.get(name) != ours.get(name):
            yield f"{name} {found.get(name, 'missing')}, here {ours.get(name, 'missing')}"


def _killed(fault: Any) -> InputError:
    phrase = f"{fault.allowed_failures + 1} workers ended, one after the other, in one evaluation"
    notes = (f"the last was {fault.last_worker.address}",)
    advice = "their logs say why; where memory ran out, give each worker more"
    return InputError(Diagnostic("CS218", phrase, notes=notes, help=advice))


def _gone(address: str) -> InputError:
    phrase = f"the Dask scheduler {address} went away during the work"
    advice = "start it and its workers again; the same command with -o then continues"
    return InputError(Diagnostic("CS253", phrase, help=advice))
