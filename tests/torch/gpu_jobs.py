"""Jobs for GPUs alone: streams and graphs."""

import os

import torch
import torch.distributed as dist

import colsynth.torch

LENGTH = 3840
"""Elements; 1 to 8 ranks and their chunks divide it."""


def share_gpu(rank):
    """Let a rank use the GPU that all use, as a host of its own with sockets between them."""
    os.environ.update(NCCL_HOSTID=f"rank {rank}", NCCL_SOCKET_IFNAME="lo", NCCL_NET="Socket")
    torch.cuda.set_device(0)
    torch.set_default_device("cuda")


def streams(rank, size):
    """On a GPU, calls wait for what is queued before them, and what is queued behind for them."""
    total = float(sum(range(1, size + 1)))
    side = torch.cuda.Stream()
    for turn in range(20):
        slow = torch.ones(1 << 24)
        for _ in range(20):
            slow = slow * 1.0  # keeps the stream busy until the call is made
        first = slow[:LENGTH].clone() * (rank + 1)
        work = dist.all_reduce(first, async_op=True)
        del slow  # its memory may be used again at once
        other = torch.full((LENGTH,), float(turn))
        dist.all_reduce(other)
        assert work.wait()
        twice = first * 2  # on the current stream
        with torch.cuda.stream(side):
            second = torch.full((LENGTH,), float(rank + 1))
            dist.all_reduce(second)
            second += 1
        torch.cuda.current_stream().wait_stream(side)
        assert (twice == 2 * total).all()
        assert (second == total + 1).all()
        assert (other == turn * size).all()
    asked = [torch.full((LENGTH,), float(rank + k)) for k in range(8)]
    works = [dist.all_reduce(t, async_op=True) for t in asked]
    del asked  # the works keep what they need
    results = [work.result()[0] for work in works]
    assert [t.unique().item() for t in results] == [total - size + size * k for k in range(8)]
    assert ("allreduce", "library") not in colsynth.torch.served()


def graph(rank, size):
    """On a GPU, calls can be captured in a graph that is replayed with new data."""
    data, out = torch.zeros(LENGTH), torch.zeros(LENGTH * size)
    dist.all_reduce(data)
    dist.all_gather_into_tensor(out, data)
    torch.cuda.synchronize()
    own = torch.cuda.CUDAGraph()
    with torch.cuda.graph(own, capture_error_mode="thread_local"):
        dist.all_reduce(data)
        dist.all_gather_into_tensor(out, data)
    for turn in range(4):
        data.fill_(float(rank + turn))
        own.replay()
        torch.cuda.synchronize()
        total = sum(other + turn for other in range(size))
        assert (data == total).all(), turn
        assert (out == total).all(), turn
