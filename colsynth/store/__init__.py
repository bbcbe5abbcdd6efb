"""Timed schedules as files, and back.

A schedule file is a numpy archive: a zip of ``.npy`` arrays that `numpy.load` opens
without pickle. It holds the problem, so that a file can be checked and replayed on its own.

``metadata``, a uint8 array of JSON text in UTF-8:

- ``format`` ("colsynth timed schedule") and ``version`` (2);
- ``topology``: ``name``, ``nodes`` as [name, kind, box, capabilities], ``ranks`` as node
  indices, ``kinds`` of links as [bandwidth in bytes per second, latency in seconds];
- ``collective``, ``root``, ``groups``, ``transit``, ``demands`` as [holders, wanted, count,
  reduces];
- ``size`` in bytes, ``chunks_per_gpu``, ``chunks``, ``chunk_bytes``, ``tick`` in seconds,
  ``ticks``, ``bound`` as [seconds, reason], ``phases`` as their directions,
  ``claim``, what is proven beyond the bound.

Numbers that may be no whole ones are texts of exact fractions, such as "1/3".

``link_source``, ``link_target``, ``link_kind``: node indices and place in ``kinds`` of every
link of the topology; the row is the index by which links are called.

For each phase, with its number in place of P:

- ``phaseP_source``, ``_target``: ranks of hops, that is of ways from one GPU to another
  through no third; hop h takes the links ``_links[_first_link[h]:_first_link[h + 1]]``,
  each occupied from ``_begin`` to ``_end`` ticks after the start of a transfer; the target
  holds the chunk ``_lag[h]`` ticks after the last of them falls free;
- ``phaseP_first``, ``_chunk``: hop h carries ``_chunk[_first[h]:_first[h + 1]]``, in order
  of time;
- ``phaseP_first_run``, ``_run_start``, ``_run_length``: starts of the transfers of a hop, in
  ticks. Run r of hop h (``_first_run[h] <= r < _first_run[h + 1]``) is ``_run_length[r]``
  transfers, the first at ``_run_start[r]``, each later one a stride after the one before;
  the stride of a hop is the longest ``_end - _begin`` of its links.

Files of version 1 have no ``_lag``: it is 0.

Chunks are numbered as :mod:`colsynth.model.timed` says. :mod:`colsynth.store.rows` spells the
runs out: one row (start, end, link, chunk) for every occupied link, or one for every transfer.
"""

from colsynth.store.reader import read_npz
from colsynth.store.rows import LinkRows, TransferRows, link_rows, transfer_rows
from colsynth.store.writer import write_npz

__all__ = ["LinkRows", "TransferRows", "link_rows", "read_npz", "transfer_rows", "write_npz"]
