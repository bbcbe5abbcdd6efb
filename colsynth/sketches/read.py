"""From a sketch file and a topology to a checked sketch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from colsynth.errors import Span
from colsynth.model import Sketch, Topology
from colsynth.model.sketch import Pairs
from colsynth.reading import DESCRIPTION, FileKind, read_whole
from colsynth.sketches import own, taccl
from colsynth.sketches.draft import ALL, RAILS, WORDING, Draft, Turn, contradiction
from colsynth.sketches.logical import members_of, ways_of
from colsynth.sketches.symmetry import Logical, Way, turned
from colsynth.text import listed
from colsynth.topology.document import Path_, decode_document

SKETCH = FileKind("sketch", DESCRIPTION.most)


@dataclass(frozen=True, slots=True)
class Found:
    """A sketch, and what its user should know."""

    sketch: Sketch
    notes: tuple[str, ...]


def read_sketch(path: Path, topology: Topology) -> Found:
    """Return the sketch of a file, for a topology.

    Raises
    ------
    InputError
        CS101 to CS109 for a file that cannot be read, CS142 where it contradicts itself, CS143
        where it does not fit the topology, CS144 for a symmetry that is none; at their place.
    """
    return decode_sketch(read_whole(path, SKETCH, "CS101"), str(path), topology)


def decode_sketch(data: bytes, file: str, topology: Topology) -> Found:
    """Return the sketch of the bytes of a file; `file` is what diagnostics call it."""
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        data = data.replace(b"\t", b" ")  # in JSON, a tab is a blank
    document = decode_document(data, file, WORDING)
    is_taccl = "version" not in document.data and taccl.KEYS & document.data.keys()
    draft = (taccl if is_taccl else own).draft_of(document)
    return _Resolver(draft, topology).sketch()


class _Resolver:
    """Turns places in a box into ranks, and checks them against a topology."""

    def __init__(self, draft: Draft, topology: Topology) -> None:
        self.draft, self.topology = draft, topology
        self.at = draft.document.at
        self.boxes = self._boxes()
        self.size = len(self.boxes[0])

    def sketch(self) -> Found:
        """Return the sketch, with notes on what of it the topology does not have."""
        draft = self.draft
        joined = self._joined()
        senders = self._senders(joined)
        found = Sketch(
            draft.document.file,
            within=self._within(),
            between=None if joined is None else self._across(joined),
            leave=tuple(
                tuple(box[sender] for sender in senders[gpu])
                for box in self.boxes
                for gpu in range(self.size)
            )
            if senders
            else (),
            in_order=draft.in_order,
            connections=draft.connections,
            symmetries=tuple(self._image(turn) for turn in draft.turns),
            chunks=draft.chunks,
            share=draft.share,
        )
        ways = ways_of(self.topology, found)
        notes = (*draft.notes, *self._without_way(found, ways))
        self._check_boxes_joined(found, ways)
        logical = Logical(self.topology, found, ways)
        for turn, image in zip(draft.turns, found.symmetries, strict=True):
            self._check_symmetry(turn, logical.fault(image))
        return Found(found, notes)

    def _boxes(self) -> list[list[int]]:
        """Return the ranks of every box; refuse a topology that sketches cannot describe."""
        topology, draft = self.topology, self.draft
        at = self.at(*draft.boxes_at)
        found = equal_boxes(topology, at)
        if draft.boxes is not None and draft.boxes != len(found):
            phrase = f"the sketch is for {draft.boxes} boxes, {topology.name} has {len(found)}"
            advice = f"give --nodes {draft.boxes}"
            raise contradiction(phrase, at, code="CS143", advice=advice)
        return found

    def _gpu(self, number: int, role: str, path: Path_) -> int:
        """Return the place of a GPU in a box, if boxes have it."""
        if number < self.size:
            return number
        where = self.draft.document.key(*path)
        phrase = f"{role} {number} is no GPU of a box"
        note = f"boxes of {self.topology.name} have GPUs 0 to {self.size - 1}"
        raise contradiction(phrase, where, note)

    def _joined(self) -> tuple[tuple[int, int], ...] | None:
        """Return the connections between boxes, in places; None for all."""
        if self.draft.between in (None, ALL):
            return None
        if self.draft.between == RAILS:
            return tuple((gpu, gpu) for gpu in range(self.size))
        return tuple(
            (self._gpu(sender, "sender", path), self._gpu(receiver, "receiver", path))
            for sender, receiver, path in self.draft.pairs
        )

    def _senders(self, joined: tuple[tuple[int, int], ...] | None) -> dict[int, list[int]]:
        """Return through which GPUs the chunks of each leave a box, in places; empty for any."""
        found: dict[int, list[int]] = {}
        can = {sender for sender, _ in joined} if joined is not None else set(range(self.size))
        pairs = self.draft.senders
        if self.draft.relay is not None:
            block, place = self.draft.relay
            path: Path_ = ("internode_sketch", "chunk_to_relay_map")
            pairs = tuple((gpu, gpu // block * block + place, path) for gpu in range(self.size))
        for gpu, sender, path in pairs:
            self._gpu(sender, "sender", path[:-1])
            self._gpu(gpu, "GPU", path)
            if sender not in can:
                phrase = f"GPU {sender} is to send for GPU {gpu} and has no connection"
                note = f"connections between boxes begin at GPUs {listed(map(str, sorted(can)))}"
                raise contradiction(phrase, self.draft.document.key(*path), note)
            if sender not in found.setdefault(gpu, []):
                found[gpu].append(sender)
        missing = [gpu for gpu in range(self.size) if gpu not in found]
        if found and missing:
            phrase = f"no sender takes the chunks of GPU {missing[0]} out of its box"
            raise contradiction(phrase, self.at(*pairs[0][2][:2]))
        return found

    def _across(self, joined: Sequence[tuple[int, int]]) -> Pairs:
        boxes = self.boxes
        return tuple(
            sorted(
                {
                    (one[sender], other[receiver])
                    for one in boxes
                    for other in boxes
                    if one is not other
                    for sender, receiver in joined
                }
            )
        )

    def _within(self) -> Pairs | None:
        if not self.draft.among:
            return None
        pairs: set[tuple[int, int]] = set()
        for gpus, path in self.draft.among:
            for i, gpu in enumerate(gpus):
                self._gpu(gpu, "GPU", (*path, i))
            if twice := [gpu for gpu, count in Counter(gpus).items() if count > 1]:
                raise contradiction(f"GPU {twice[0]} is named twice", self.at(*path))
            pairs |= {(a, b) for a in gpus for b in gpus if a != b}
        return tuple(sorted((box[a], box[b]) for box in self.boxes for a, b in pairs))

    def _image(self, turn: Turn) -> tuple[int, ...]:
        """Return the permutation of the ranks that a symmetry is."""
        ranks = self.topology.size
        if not turn.image:
            try:
                return turned(turn.offset, turn.size, ranks)
            except ValueError as fault:
                phrase = f"[{turn.offset}, {turn.size}] is no turn of the ranks"
                at = self.at(*turn.at)
                raise contradiction(phrase, at, str(fault), code="CS144") from None
        if sorted(turn.image) != list(range(ranks)):
            phrase = f"a symmetry names each of the ranks 0 to {ranks - 1} once"
            raise contradiction(phrase, self.at(*turn.at), code="CS144")
        return turn.image

    def _check_symmetry(self, turn: Turn, fault: str | None) -> None:
        if fault is not None:
            word = "the permutation" if turn.image else f"[{turn.offset}, {turn.size}]"
            phrase = f"{word} is no symmetry of the sketch on {self.topology.name}"
            raise contradiction(phrase, self.at(*turn.at), fault, code="CS144")

    def _without_way(self, sketch: Sketch, ways: Sequence[Way]) -> Iterator[str]:
        """Yield a note on connections between boxes that the topology does not have."""
        have = {(source, target) for source, target, _ in ways}
        lost = [pair for pair in sketch.between or () if pair not in have]
        if lost:
            names = self.topology.gpu_names
            shown = listed((f"{names[a]} -> {names[b]}" for a, b in lost), 2)
            yield (
                f"{self.topology.name} has no way for {len(lost)} of "
                f"{len(sketch.between or ())} connections of the sketch: {shown}"
            )

    def _check_boxes_joined(self, sketch: Sketch, ways: Sequence[Way]) -> None:
        """Refuse a sketch that leaves no way from some box to another, for some chunk."""
        if len(self.boxes) > 2 and not sketch.leave:
            return  # a third box may pass chunks on
        box_of = {rank: number for number, box in enumerate(self.boxes) for rank in box}
        out = {(source, box_of[target]) for source, target, _ in ways}
        names = self.topology.gpu_names
        for rank, number in box_of.items():
            senders = sketch.leave[rank] if sketch.leave else self.boxes[number]
            for other in range(len(self.boxes)):
                if other != number and not any((sender, other) in out for sender in senders):
                    phrase = f"no way is left for chunks of {names[rank]} to box {other}"
                    told = listed([names[sender] for sender in senders])
                    note = f"{self.topology.name} joins that box to none of {told}"
                    raise contradiction(phrase, self.at(*self.draft.between_at), note, code="CS143")


def equal_boxes(topology: Topology, at: Span | None = None) -> list[list[int]]:
    """Return the ranks of every box; refuse a topology that sketches cannot describe (CS143)."""
    found = members_of(topology)
    flat = [rank for box in found for rank in box]
    if len({len(box) for box in found}) > 1 or flat != list(range(topology.size)):
        phrase = f"the boxes of {topology.name} differ, or their ranks are mixed"
        note = "a sketch says the same of all boxes, GPU by GPU"
        raise contradiction(phrase, at, note, code="CS143")
    return found
