"""The messages of a round, on NCCL or RCCL: one group per round, of PyTorch's own communicator.

A group starts all its sends and receives together. So the order in which ranks list them cannot
block, and the library keeps calls in order with those of PyTorch.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from colsynth.torch.rounds import Part
from colsynth.torch.runs import cut

_UINT8 = 1
"""``ncclUint8`` (``nccl.h``)."""
_SUCCESS, _IN_PROGRESS = 0, 7


class NcclTransport:
    """Messages by PyTorch's ``send`` and ``recv``, which it watches itself.

    Parameters
    ----------
    backend : ProcessGroupNCCL
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._connected: set[torch.device] = set()

    def begin(self, device: torch.device) -> None:
        """Let all ranks make the communicator together; later groups may leave ranks out.

        A barrier would guess the device.
        """
        if device not in self._connected:
            self._backend.allreduce([torch.zeros(1, device=device)]).wait()
            self._connected.add(device)

    def exchange(self, part: Part, buffers: Mapping[str, torch.Tensor], chunk: int) -> None:
        """The current stream waits for the group; the caller does not."""
        views = cut(buffers, part.sent, chunk)
        self._backend._start_coalescing()  # noqa: SLF001 - batch_isend_irecv does it so
        for message in part.posts:
            post = self._backend.send if message.sends else self._backend.recv
            post([views[message.data]], message.peer, 0)
        self._backend._end_coalescing().wait()  # noqa: SLF001


class DirectTransport(NcclTransport):
    """Messages by the library's own functions: PyTorch takes ten times as long to post one.

    PyTorch's watchdog knows nothing of them, so a `Watch` has to look.

    Parameters
    ----------
    backend : ProcessGroupNCCL
    library : CDLL
    """

    def __init__(self, backend: Any, library: ctypes.CDLL) -> None:
        super().__init__(backend)
        self._library = library
        self._communicator = 0
        self._device: torch.device | None = None

    def begin(self, device: torch.device) -> None:
        """Make the communicator, and look up where it is now."""
        super().begin(device)
        self._device = device
        self._communicator = self._backend._comm_ptr()  # noqa: SLF001 - there is no other way

    def exchange(self, part: Part, buffers: Mapping[str, torch.Tensor], chunk: int) -> None:
        """All is queued on the current stream."""
        library, communicator = self._library, self._communicator
        first = {name: buffer.data_ptr() for name, buffer in buffers.items()}
        stream = torch.cuda.current_stream().cuda_stream
        results = [library.ncclGroupStart()]
        for message in part.posts:
            post = library.ncclSend if message.sends else library.ncclRecv
            buffer, offset = message.slot
            place, size = first[buffer] + offset * chunk, message.count * chunk
            results.append(post(place, size, _UINT8, message.peer, communicator, stream))
        results.append(library.ncclGroupEnd())  # also behind a failure: groups must be closed
        if max(results) != _SUCCESS:
            raise RuntimeError(f"colsynth: {self._text(max(results))}")

    def fault(self) -> str | None:
        """Return what the library says of a communicator that has failed; None while it has not.

        It may be asked in any thread.
        """
        state = ctypes.c_int(_SUCCESS)
        try:
            with torch.cuda.device(self._device):
                communicator = self._backend._comm_ptr()  # noqa: SLF001
        except RuntimeError:  # PyTorch has ended it
            return None
        if communicator:
            self._library.ncclCommGetAsyncError(communicator, ctypes.byref(state))
        return None if state.value in (_SUCCESS, _IN_PROGRESS) else self._text(state.value)

    def _text(self, result: int) -> str:
        return f"NCCL: {self._library.ncclGetErrorString(result).decode()}"


def transport_of(backend: Any) -> NcclTransport:
    """Return the fastest transport that there is for a backend.

    Parameters
    ----------
    backend : ProcessGroupNCCL
    """
    library = _library()
    if library is None or not hasattr(backend, "_comm_ptr"):
        return NcclTransport(backend)
    return DirectTransport(backend, library)


@cache
def _library() -> ctypes.CDLL | None:
    """Return the library that PyTorch has loaded; None where that cannot be made sure.

    Another copy would not know the communicator. Functions of communicators that do not block
    return before they are done, so these are left to PyTorch.
    """
    name = "librccl.so.1" if torch.version.hip else "libnccl.so.2"
    try:
        library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        version = ctypes.c_int()
        library.ncclGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    major, minor, patch = torch.cuda.nccl.version()[:3]
    known = 10_000 * major + 100 * minor + patch
    if version.value != known or os.environ.get("TORCH_NCCL_USE_COMM_NONBLOCKING", "0") != "0":
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for post in (library.ncclSend, library.ncclRecv):
        post.argtypes = [pointer, ctypes.c_size_t, number, number, pointer, pointer]
    library.ncclCommGetAsyncError.argtypes = [pointer, pointer]
    library.ncclGetErrorString.restype = ctypes.c_char_p
    return library
