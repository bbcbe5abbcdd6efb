"""Jobs of several processes on one machine: run as a program, it imports PyTorch once and forks.

``python -m tests.torch.jobs FOLDER JOB RANKS [JOB RANKS ...]`` runs each job with so many ranks and
prints, for each, the lines of its ranks. Ranks meet at a file in FOLDER. With
``COLSYNTH_TEST_DEVICE=cuda`` all ranks work on the first GPU of this host and NCCL moves the data:
it takes each rank for a host of its own, since it refuses two ranks on one GPU otherwise.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from importlib import import_module
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import colsynth.torch
from tests.torch.gpu_jobs import LENGTH, graph, share_gpu, streams

LATE = ("torch._dynamo", "torch.distributed.fsdp", "torch.distributed._functional_collectives")
"""Modules that every rank would import by itself otherwise, a second each."""
DEVICE = os.environ.get("COLSYNTH_TEST_DEVICE", "cpu")
LIBRARY = "gloo" if DEVICE == "cpu" else "nccl"
"""What results are compared with."""
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8)
WAYS = {"sum": dist.ReduceOp.SUM, "product": dist.ReduceOp.PRODUCT, "max": dist.ReduceOp.MAX}
SERVED = {"allreduce", "broadcast", "all_gather_single", "all_gather_single_coalesced"}
SERVED |= {"all_to_all_single", "reduce_scatter_single", "reduce_scatter_single_coalesced"}
PASSED_ON = {"allgather", "reduce_scatter", "allreduce_coalesced", "send", "recv", "barrier"}
"""With `SERVED`, the calls for which PyTorch keeps Python's lock where no class overrides them, and
may hang (`PyProcessGroup.hpp`)."""


def _data(rank, kind=torch.float32, length=LENGTH, seed=0):
    """Return small whole numbers, whose sums and products are exact in every type and order."""
    torch.manual_seed(1000 * seed + rank)
    return torch.randint(1, 3, (length,)).to(kind)


def _calls(rank, size, group, kind):
    """Return the results of every call, out of place and in place, in any group."""
    mine, whole = _data(rank, kind), _data(rank, kind, LENGTH * size, 1)
    out = []
    for way in WAYS.values() if kind is not torch.uint8 else [dist.ReduceOp.SUM]:
        tensor = mine.clone()
        dist.all_reduce(tensor, way, group=group)
        out.append(tensor)
        part = mine.new_zeros(LENGTH)
        dist.reduce_scatter_tensor(part, whole.clone(), way, group=group)
        out.append(part)
        tensor = mine.clone()
        dist.reduce(tensor, group_dst=1, op=way, group=group)
        out.append(tensor if rank == 1 else tensor[:0])
    gathered = mine.new_zeros(LENGTH * size)
    dist.all_gather_into_tensor(gathered, mine, group=group)
    out.append(gathered)
    gathered = gathered.clone().zero_()
    own = gathered[rank * LENGTH :][:LENGTH]
    own.copy_(mine)
    dist.all_gather_into_tensor(gathered, own, group=group)  # in place, as FSDP2 has it
    out.append(gathered)
    swapped = whole.new_zeros(LENGTH * size)
    dist.all_to_all_single(swapped, whole, group=group)
    out.append(swapped)
    tensor = mine.clone()
    dist.broadcast(tensor, group_src=0, group=group)
    out.append(tensor)
    return out


def calls(rank, size):
    """All calls give what the library gives; several groups; works; what is left to the library."""
    library = dist.new_group(backend=LIBRARY)
    for kind in TYPES if size == 4 else TYPES[:1]:
        ours, theirs = (_calls(rank, size, group, kind) for group in (None, library))
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert torch.equal(one, other), (kind, number)
    before = colsynth.torch.served()
    names = ("allreduce", "reduce", "broadcast", "allgather", "reduce-scatter", "alltoall")
    assert all(before[name, "rounds"] and (name, "library") not in before for name in names)
    works = [dist.all_reduce(_data(rank, seed=k), async_op=True) for k in range(8)]
    assert all(work.wait() and work.is_completed() and work.is_success() for work in works)
    mean = _data(rank)
    total = mean.clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    dist.all_reduce(total)
    assert torch.equal(mean, total / size)
    with torch.inference_mode():
        made = _data(rank)
        dist.all_reduce(made)
    assert torch.equal(made, total)
    _mixed(rank, size)
    _functional(rank, size)
    _library(rank, size)
    halves = [list(range(size // 2)), list(range(size // 2, size))]
    groups = [dist.new_group(ranks, backend="colsynth") for ranks in halves]
    mine = groups[rank // (size // 2)]
    both = [_data(rank), _data(rank, seed=2)]
    works = [
        dist.all_reduce(t, group=g, async_op=True) for t, g in zip(both, (mine, None), strict=True)
    ]
    [work.wait() for work in works]
    half = halves[rank // (size // 2)]
    assert torch.equal(both[0], sum(_data(other) for other in half))
    assert torch.equal(both[1], sum(_data(other, seed=2) for other in range(size)))
    assert isinstance(mine, colsynth.torch.RoundsGroup)
    return dict(colsynth.torch.served(mine))


def _mixed(rank, size):
    """Check calls that are in place on some ranks only: all still take the same schedule."""
    before = dict(colsynth.torch.served())
    whole, swapped = _data(rank, length=LENGTH * size), torch.zeros(LENGTH * size)
    dist.all_to_all_single(swapped, whole)
    mixed = torch.zeros(LENGTH * size) if rank % 2 else whole
    dist.all_to_all_single(mixed, whole)
    assert torch.equal(mixed, swapped)
    gathered = torch.zeros(LENGTH * size)
    own = gathered[rank * LENGTH :][:LENGTH] if rank % 2 else gathered[:LENGTH].clone()
    own.copy_(_data(rank))
    dist.all_gather_into_tensor(gathered, own)
    assert torch.equal(gathered, torch.cat([_data(other) for other in range(size)]))
    after = colsynth.torch.served()
    assert {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)} == {
        ("alltoall", "rounds"): 2,
        ("allgather", "rounds"): 1,
    }


def _functional(rank, size):
    """Check the calls that DTensor makes: they are coalesced, of one tensor or of several."""
    from torch.distributed import _functional_collectives as functional

    group, before = dist.group.WORLD, dict(colsynth.torch.served())
    mine, whole = _data(rank), _data(rank, length=LENGTH * size, seed=1)
    gathered = functional.all_gather_tensor(mine, 0, group)
    assert torch.equal(gathered, torch.cat([_data(other) for other in range(size)]))
    total = sum(_data(other, length=LENGTH * size, seed=1) for other in range(size))
    own = total.view(size, LENGTH)[rank]
    assert torch.equal(functional.reduce_scatter_tensor(whole, "sum", 0, group), own)
    odd = torch.arange(3.0) + rank
    for given, got in zip(
        (mine, odd), functional.all_gather_into_tensor_coalesced([mine, odd], group), strict=True
    ):
        assert torch.equal(got.view(size, -1)[rank], given)
    outs = functional.reduce_scatter_tensor_coalesced([whole, whole], "sum", [0, 0], group)
    assert all(torch.equal(out, own) for out in outs)
    after = colsynth.torch.served()
    more = {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)}
    assert more["reduce-scatter", "rounds"] == 3, more
    assert more["allgather", "rounds"] + more.get(("allgather", "library"), 0) == 3, more


def _library(rank, size):
    """Check calls that no schedule serves: sizes, types, views, roots, and other calls."""
    assert vars(colsynth.torch.RoundsGroup).keys() >= SERVED | PASSED_ON
    before = colsynth.torch.served()
    for tensor in (
        torch.ones(LENGTH + 1),
        torch.ones(LENGTH, dtype=torch.bool),
    ):
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        assert (tensor == 1).all()
    flags = torch.tensor([rank == 0] * LENGTH)
    dist.broadcast(flags, 0)  # copies take any type
    assert flags.all()
    tensor = torch.full((LENGTH,), float(rank))
    dist.broadcast(tensor, size - 1)  # the schedule has another root
    assert (tensor == size - 1).all()
    uneven = [1] * (size - 1) + [2]
    got = torch.zeros(uneven[rank] * size)
    sent = torch.arange(size + 1.0)
    dist.all_to_all_single(got, sent, [uneven[rank]] * size, uneven)
    dist.barrier()
    objects = [None] * size
    dist.all_gather_object(objects, rank)
    assert objects == list(range(size))
    part, parts = torch.zeros(3), [torch.full((3,), 1.0 + k) for k in range(size)]
    dist.reduce_scatter(part, parts)
    assert (part == size * (1 + rank)).all()
    several = [torch.ones(3), torch.full((5,), 2.0)]
    dist.all_reduce_coalesced(several)
    assert [t.unique().item() for t in several] == [size, 2 * size]
    if rank < 2:
        (dist.send if rank == 0 else dist.recv)(torch.ones(3), 1 - rank)
    after = colsynth.torch.served()
    for name in ("allreduce", "broadcast", "alltoall"):
        assert after[name, "library"] > before.get((name, "library"), 0), name


def _trained(model, rank, steps=4):
    """Return the losses of a short training, and the parameters behind it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(rank)
    inputs, wanted = torch.randn(16, 24), torch.randn(16, 8)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]


def _model():
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Linear(24, 40), torch.nn.Tanh(), torch.nn.Linear(40, 8, bias=False)
    )


def training(rank, size):
    """DDP and FSDP2 train as with the library: to the bit in pairs, else nearly."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    pairs = [list(range(first, first + 2)) for first in range(0, size, 2)]
    found = []
    for ranks, exact in ((pairs, True), ([list(range(size))], False)):
        results = []
        for backend in ("colsynth", LIBRARY):
            group = next(
                g
                for g in [dist.new_group(some, backend=backend) for some in ranks]
                if isinstance(g, dist.ProcessGroup)
            )
            plain = DistributedDataParallel(_model(), process_group=group)
            sharded = _model()
            fully_shard(sharded, mesh=DeviceMesh.from_group(group, DEVICE))
            results.append([_trained(model, rank) for model in (plain, sharded)])
            if backend == "colsynth":
                found.append(dict(colsynth.torch.served(group)))
        for (losses, ours), (others, theirs) in zip(*results, strict=True):
            assert losses[-1] < losses[0]
            if exact:
                assert losses == others
                assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
            torch.testing.assert_close(losses, others)
            torch.testing.assert_close(ours, theirs)
    return found


def failure(rank, size):
    """A rank that gives up ends the others, who wait in Python or in DDP's C++."""
    model = DistributedDataParallel(torch.nn.Linear(60, 64, bias=False))
    if rank == size - 1:
        raise ValueError("this rank gives up")
    texts = []
    for wait in (model(torch.ones(1, 60)).sum().backward, lambda: dist.all_reduce(_data(rank))):
        try:
            wait()
        except RuntimeError as fault:
            texts.append(str(fault))
            assert f"failed on rank {rank}" in texts[-1], texts[-1]
    assert len(texts) == 2, "a call ended as if all were well"
    assert colsynth.torch.served()["allreduce", "rounds"] >= 1
    return texts[-1]


def mismatch(_rank, _size):
    """Ranks with different schedules refuse each other before the first call."""
    raise AssertionError("the group came about")


def unread(_rank, _size):
    """Ranks do not wait for one that cannot read its schedules."""
    raise AssertionError("the group came about")


_KEPT: list[dict[str, object]] = []
"""What programs of the guide leave behind, until the process ends.

PyTorch's own Gloo group may hang when the last reference to it goes with a model: its destructor
waits, with Python's lock, for a thread that waits for that lock (seen with 2.13).
"""


def example(rank, size, folder):
    """The program of the guide trains as with the library; it prints its losses."""
    text = (folder / "train.py").read_text()
    assert 'group("colsynth")' in text
    printed = {}
    for backend in ("colsynth", LIBRARY):
        # A file to meet at, since another process may take a port that was free just now.
        store = f"store=dist.FileStore({str(folder / backend)!r}, {size})"
        meet = f'group("{backend}", {store}, rank={rank}, world_size={size})'
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            source = text.replace('group("colsynth")', meet)
            if backend == LIBRARY:
                source = source.replace("{colsynth.torch.served()}", "")
            _KEPT.append({})
            exec(source, _KEPT[-1])
        printed[backend] = told.getvalue().splitlines()
    assert "('allreduce', 'rounds'): 5" in printed["colsynth"].pop()
    assert len(printed["colsynth"]) == 5
    assert printed["colsynth"] == printed[LIBRARY][:-1]


JOBS = {job.__name__: job for job in (calls, training, failure, mismatch, unread, streams, graph)}


def _run(job, rank, size, folder, write):
    """Do a rank's part; write one line."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        if DEVICE != "cpu":
            share_gpu(rank)
        if job == "mismatch" and rank == 1:
            os.environ["COLSYNTH_BUNDLE"] = os.environ["COLSYNTH_OTHER"]
        if job == "unread" and rank == 1:
            os.environ["COLSYNTH_BUNDLE"] = "nothing.json"
        if job == "example":
            line = f"ok {example(rank, size, folder)}"
            os.write(write, f"{job} {size} {rank} {line}\n".encode())
            os._exit(0)
        store = dist.FileStore(str(folder / f"{job}{size}"), size)
        dist.init_process_group("colsynth", store=store, rank=rank, world_size=size)
        line = f"ok {JOBS[job](rank, size)}"
        dist.barrier() if job != "failure" else None
    except BaseException as fault:  # noqa: BLE001 - told to the parent
        trace = "" if job in ("failure", "mismatch", "unread") else traceback.format_exc()
        line = f"{type(fault).__name__}: {fault} {trace}"
    text = " ".join(line.split())
    os.write(write, f"{job} {size} {rank} {text}\n".encode())
    os._exit(0)


def main(folder, *jobs):
    for module in LATE:
        import_module(module)
    for job, count in zip(jobs[::2], jobs[1::2], strict=True):
        size, children = int(count), []
        read, write = os.pipe()
        for rank in range(size):
            child = os.fork()
            if not child:
                _run(job, rank, size, Path(folder), write)
            children.append(child)
        os.close(write)
        with os.fdopen(read) as lines:
            print("".join(sorted(lines)), end="", flush=True)
        for child in children:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
