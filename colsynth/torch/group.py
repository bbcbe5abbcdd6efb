"""The process group: calls that a schedule serves go to rounds, all others to the library."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective
from colsynth.torch.aliases import fitted
from colsynth.torch.arguments import flat, normal, rooted
from colsynth.torch.engine import DeviceEngine, HostEngine
from colsynth.torch.rounds import Combine, RankProgram, execute, part_of
from colsynth.torch.shelf import Scheduled, Shelf, read_shelf
from colsynth.torch.transport import GlooTransport, NcclTransport
from colsynth.torch.works import DeviceWork, HostWork, SeveralWorks

Kind = dist.ProcessGroup.BackendType

_COMBINES: tuple[tuple[Any, Combine], ...] = (
    (dist.ReduceOp.SUM, torch.add),
    (dist.ReduceOp.AVG, torch.add),
    (dist.ReduceOp.PRODUCT, torch.mul),
    (dist.ReduceOp.MIN, torch.minimum),
    (dist.ReduceOp.MAX, torch.maximum),
)
_UNREAD = "unread"
"""In place of the checksum of schedules that cannot be read."""
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_NUMBERS = (*_FLOATS, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""Types that are added up; any are copied."""


class RoundsGroup(dist.ProcessGroup):
    """A process group with schedules.

    What it does not override, PyTorch hands to the library's backend of the tensor's device.
    PyTorch keeps Python's lock there where a call may be overridden (2.13, `PyProcessGroup`), and
    a thread of Gloo that lets go of a tensor waits for that lock while it holds the one that the
    call waits for. So calls that no schedule serves are overridden too, and passed on without it.

    Parameters
    ----------
    shelf : Shelf
    store : Store
        Of the group alone.
    rank, size : int
        In the group.
    timeout : timedelta
    """

    def __init__(
        self, shelf: Shelf, store: dist.Store, rank: int, size: int, timeout: timedelta
    ) -> None:
        super().__init__(rank, size)
        self._shelf, self._rank, self._size = shelf, rank, size
        self._programs: dict[int, RankProgram] = {}
        self._libraries: dict[str, Any] = {}
        self._engines: dict[str, HostEngine | DeviceEngine] = {}
        self.served: Counter[tuple[str, str]] = Counter()
        gloo = dist.ProcessGroupGloo(dist.PrefixStore("library", store), rank, size, timeout)
        self._add_library("cpu", Kind.GLOO, gloo)
        if shelf.files:
            own = dist.ProcessGroupGloo(dist.PrefixStore("rounds", store), rank, size, timeout)
            self._engines["cpu"] = HostEngine(GlooTransport(own), store, rank)
        if torch.cuda.is_available() and dist.is_nccl_available():
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = timeout  # noqa: SLF001 - as PyTorch's own helper does
            nccl = dist.ProcessGroupNCCL(dist.PrefixStore("nccl", store), rank, size, options)
            self._add_library("cuda", Kind.NCCL, nccl)
            self._engines["cuda"] = DeviceEngine(NcclTransport(nccl))

    def _add_library(self, device: str, kind: Any, backend: Any) -> None:
        backend._set_sequence_number_for_group()  # noqa: SLF001 - as PyTorch's own helper does
        self._register_backend(torch.device(device), kind, backend)
        self._set_default_backend(kind)
        self._libraries[device] = backend

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name
        """Return the name under which the backend is registered."""
        return "colsynth"

    def shutdown(self) -> None:
        """End threads, then what the library has."""
        for engine in self._engines.values():
            engine.close()
        super().shutdown()

    # The calls. Signatures are those of PyTorch's C++ class; older names stay beside new ones.

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> Any:
        """Serve ``all_reduce``."""
        tensors, opts = normal(tensors, opts, dist.AllreduceOptions)
        call = Collective.ALLREDUCE
        work = self._serve_one(call, tensors, op=opts.reduceOp)
        return work or self._library(call, tensors[0]).allreduce(tensors, opts)

    def reduce(self, tensors: Any, opts: Any = None, *rest: Any) -> Any:
        """Serve ``reduce``."""
        tensors, opts = rooted(tensors, opts, rest, dist.ReduceOptions)
        call = Collective.REDUCE
        work = self._serve_one(call, tensors, root=opts.rootRank, op=opts.reduceOp)
        return work or self._library(call, tensors[0]).reduce(tensors, opts)

    def broadcast(self, tensors: Any, opts: Any = None, *rest: Any) -> Any:
        """Serve ``broadcast``."""
        tensors, opts = rooted(tensors, opts, rest, dist.BroadcastOptions)
        call = Collective.BROADCAST
        work = self._serve_one(call, tensors, root=opts.rootRank)
        return work or self._library(call, tensors[0]).broadcast(tensors, opts)

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> Any:
        """Serve ``all_gather_into_tensor``."""
        opts = dist.AllgatherOptions() if opts is None else opts
        call, work = Collective.ALLGATHER, None
        if output.numel() == self._size * tensor.numel() and output.dtype == tensor.dtype:
            work = self._serve(call, flat(tensor), flat(output), [output])
        if work is not None:
            return work
        return self._library(call, output)._allgather_base(output, tensor, opts)  # noqa: SLF001

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> Any:
        """Serve ``reduce_scatter_tensor``."""
        opts = dist.ReduceScatterOptions() if opts is None else opts
        call, work = Collective.REDUCE_SCATTER, None
        if tensor.numel() == self._size * output.numel() and output.dtype == tensor.dtype:
            work = self._serve(call, flat(tensor), flat(output), [output], op=opts.reduceOp)
        if work is not None:
            return work
        library = self._library(call, output)
        return library._reduce_scatter_base(output, tensor, opts)  # noqa: SLF001

    def all_to_all_single(
        self, output: Any, tensor: Any, outputs: Any, inputs: Any, opts: Any = None
    ) -> Any:
        """Serve ``all_to_all_single`` without sizes of parts.

        Sizes that are equal on one rank may differ on others, which would then choose otherwise.
        """
        opts = dist.AllToAllOptions() if opts is None else opts
        call, work = Collective.ALLTOALL, None
        if not outputs and not inputs and output.dtype == tensor.dtype:
            work = self._serve(call, flat(tensor), flat(output), [output])
        if work is not None:
            return work
        library = self._library(call, output)
        return library.alltoall_base(output, tensor, outputs or [], inputs or [], opts)

    def all_gather_single_coalesced(self, outputs: Any, tensors: Any, opts: Any = None) -> Any:
        """Serve ``all_gather_into_tensor`` of several tensors, as DTensor calls it, one by one."""
        pairs = zip(outputs, tensors, strict=True)
        return SeveralWorks([self.all_gather_single(*pair, opts) for pair in pairs])

    def reduce_scatter_single_coalesced(self, outputs: Any, tensors: Any, opts: Any = None) -> Any:
        """Serve ``reduce_scatter_tensor`` of several tensors, as DTensor calls it, one by one."""
        pairs = zip(outputs, tensors, strict=True)
        return SeveralWorks([self.reduce_scatter_single(*pair, opts) for pair in pairs])

    # Calls that no schedule serves.

    def allgather(self, *args: Any, **more: Any) -> Any:
        """Pass on ``all_gather``."""
        return self._passed_on("allgather", args, more)

    def reduce_scatter(self, *args: Any, **more: Any) -> Any:
        """Pass on ``reduce_scatter``."""
        return self._passed_on("reduce_scatter", args, more)

    def allreduce_coalesced(self, *args: Any, **more: Any) -> Any:
        """Pass on an ``all_reduce`` of several tensors."""
        return self._passed_on("allreduce_coalesced", args, more)

    def send(self, *args: Any, **more: Any) -> Any:
        """Pass on ``send``."""
        return self._passed_on("send", args, more)

    def recv(self, *args: Any, **more: Any) -> Any:
        """Pass on ``recv``."""
        return self._passed_on("recv", args, more)

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Any:
        """Pass on ``barrier``, to the backend of its device, or of GPUs if there are any."""
        given = opts if isinstance(opts, dist.BarrierOptions) else dist.BarrierOptions()
        limit = opts if isinstance(opts, timedelta) else timeout
        if limit is not None:
            given.timeout = limit
        device = getattr(given, "device", None)
        return self._libraries[device.type if device else [*self._libraries][-1]].barrier(given)

    def _passed_on(self, name: str, args: Any, more: Any) -> Any:
        first = next(iter((*args, *more.values())))
        while not isinstance(first, torch.Tensor):
            first = first[0]
        return getattr(self._libraries[first.device.type], name)(*args, **more)

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def _library(self, collective: Collective, tensor: torch.Tensor) -> Any:
        self.served[str(collective), "library"] += 1
        return self._libraries[tensor.device.type]

    def _serve_one(
        self,
        collective: Collective,
        tensors: list[torch.Tensor],
        root: int | None = None,
        op: Any = None,
    ) -> HostWork | DeviceWork | None:
        """Do as `_serve` for a call whose input is its output."""
        only = flat(tensors[0]) if len(tensors) == 1 else None
        return self._serve(collective, only, only, tensors, root, op)

    def _serve(
        self,
        collective: Collective,
        source: torch.Tensor | None,
        target: torch.Tensor | None,
        result: list[torch.Tensor],
        root: int | None = None,
        op: Any = None,
    ) -> HostWork | DeviceWork | None:
        """Return the work of a call that a schedule serves; None leaves it to the library."""
        if source is None or target is None or not _adds_up(op, target.dtype):
            return None
        found = self._find(collective, source, target, root)
        if found is None:
            return None
        self.served[str(collective), "rounds"] += 1
        whole = max(source.numel(), target.numel())
        program = self._part(found)
        combine = next((combine for kind, combine in _COMBINES if op == kind), torch.add)
        mean = op == dist.ReduceOp.AVG and root in (None, self._rank)

        def job(transport: Any) -> None:
            with torch.inference_mode():  # tensors made in that mode can be written in no other
                given, taken = fitted(found.program.header, self._rank, source, target)
                execute(program, given, taken, whole, combine, transport)
                if mean:
                    taken.div_(self._size)
                if taken is not target:
                    target.copy_(taken)

        what = f"{collective} of {whole * source.element_size()} bytes by {found.name}"
        engine = self._engines[target.device.type]
        return engine.submit(what, job, [source, target], result)

    def _find(
        self,
        collective: Collective,
        source: torch.Tensor,
        target: torch.Tensor,
        root: int | None,
    ) -> Scheduled | None:
        if target.device.type not in self._engines:
            return None
        elements = max(source.numel(), target.numel())
        return self._shelf.find(collective, root, elements * source.element_size(), elements)

    def _part(self, found: Scheduled) -> RankProgram:
        key = id(found)  # the shelf keeps them all
        if key not in self._programs:
            self._programs[key] = part_of(found.name, found.program, self._rank)
        return self._programs[key]


def create(options: Any, places: Any) -> RoundsGroup:
    """Return a group as `Backend.register_backend` asks for it; it fails on all ranks or on none.

    Parameters
    ----------
    options : DistributedBackendOptions
    places : str, optional
        Bundles to take instead of those in ``COLSYNTH_BUNDLE``: ``pg_options`` of the caller.
    """
    rank, size = options.group_rank, options.group_size
    try:
        shelf = read_shelf(places, size)
    except InputError:
        _agree(_UNREAD, options.store, rank, size)  # others must not wait for this rank
        raise
    _agree(shelf.digest, options.store, rank, size)
    return RoundsGroup(shelf, options.store, rank, size, options.timeout)


def served(group: dist.ProcessGroup | None = None) -> dict[tuple[str, str], int]:
    """Return how many calls of a group went where, by (collective, ``"rounds"`` or ``"library"``).

    Parameters
    ----------
    group : ProcessGroup, optional
        The default group unless given.
    """
    return dict((group or dist.group.WORLD).served)


def _agree(digest: str, store: dist.Store, rank: int, size: int) -> None:
    """Refuse schedules that differ between ranks, on all ranks (CS506).

    A rank that cannot read its own only tells the others: it has a better message.
    """
    store.set(f"digest {rank}", digest)
    if rank == 0:
        others = (other for other in range(1, size))
        known = [other for other in others if _text(store, f"digest {other}") != digest]
        store.set("verdict", ", ".join(map(str, known)) or "equal")
    if digest == _UNREAD:
        return
    verdict = _text(store, "verdict")
    if verdict != "equal":
        phrase = f"ranks have different schedules: not those of rank 0 on rank {verdict}"
        advice = "give all ranks the same COLSYNTH_BUNDLE, and copy it whole to every host"
        raise InputError(Diagnostic("CS506", phrase, help=advice))


def _text(store: dist.Store, key: str) -> str:
    return str(store.get(key).decode())


def _adds_up(op: Any, dtype: torch.dtype) -> bool:
    """Whether a reduction can be made of local sums; also where there is none."""
    if op is None:
        return True
    known = any(op == kind for kind, _ in _COMBINES)
    return known and dtype in (_FLOATS if op == dist.ReduceOp.AVG else _NUMBERS)
