"""Plans of MSCCL++ executed on numbers: slow, obvious, and independent of the verifier.

Every threadblock has two threads, of which each moves half of the bytes of every operation, and
number k of a list of channels or semaphores is served by thread k. Nothing is ordered but what the
operations order; a seed decides who goes next. Ports move data later, in the order of each
channel. An element is 16 bytes, the smallest that plans move.
"""

import random

import numpy as np

THREADS = 2
GRAIN = 16
PACKETS = {"ppkt", "rppkt", "cpkt", "upkt", "repkt", "respkt"}


class Hang(Exception):
    """Nobody can go on."""


class Executor:
    """Runs a plan.

    Parameters
    ----------
    plan : dict
        As in the file.
    chunk : int
        Elements of a chunk.
    shrink : int
        Scratch and units are that many times smaller than those of the runtime.
    seed : int
    """

    def __init__(self, plan, chunk, shrink, seed):
        self.plan, self.chunk, self.shrink = plan, chunk, shrink
        self.rng = random.Random(seed)
        self.double = plan.get("use_double_scratch_buffer", False)
        room = (64 << 20) // shrink // (2 if self.double else 1)
        self.gpus = plan["gpus"]
        self.slots = [room // GRAIN // max(1, g["scratch_chunks"]) for g in self.gpus]
        assert plan.get("reuse_resources")
        self.half = 2 * room // GRAIN
        self.scratch = [np.zeros(2 * self.half, np.int64) for _ in self.gpus]
        self.flag = [np.full(2 * self.half, -1) for _ in self.gpus]
        self.counters, self.lanes = {}, {}
        self.semaphores = [[s["init_value"] for s in g.get("semaphores", [])] for g in self.gpus]
        self._pair()

    def _pair(self):
        """Find the other end of every channel."""
        ends = {}
        for rank, gpu in enumerate(self.gpus):
            for kind in ("memory", "port"):
                peers = [
                    p
                    for c in gpu["channels"]
                    if c["channel_type"] == kind
                    for p in c["connected_to"]
                ]
                for number, peer in enumerate(peers):
                    ends.setdefault((kind, rank, peer), []).append(number)
                    self.counters[kind, rank, number] = 0
        self.partner = {
            (kind, rank, one): (kind, peer, ends[kind, peer, rank][place])
            for (kind, rank, peer), numbers in ends.items()
            for place, one in enumerate(numbers)
        }

    def run(self, calls):
        """Run launches, each given by (input, output) of every rank; ranks do not wait for others.

        Raises
        ------
        Hang
            Some thread waits forever.
        """
        self.calls, self.launch = calls, [0] * len(self.gpus)
        self.running = [self._start(rank) for rank in range(len(self.gpus))]
        while any(self.running) or any(self.lanes.values()):
            threads = [t for threads in self.running for t in threads]
            self.rng.shuffle(threads)
            moved = [self._step(t) for t in threads[: self.rng.randint(1, 40)]]
            stuck = not any(moved) and not self._deliver()
            if stuck and not sum(map(self._step, threads)) and not self._deliver():
                raise Hang
            if self.rng.random() < 0.3:
                self._deliver()
            for rank, alive in enumerate(self.running):
                left = [t for t in alive if not t["done"]]
                if alive and not left:
                    self.launch[rank] += 1
                    left = self._start(rank)
                self.running[rank] = left

    def _start(self, rank):
        if self.launch[rank] == len(self.calls):
            return []
        threads = []
        for block in self.gpus[rank]["threadblocks"]:
            state = {"waiting": 0, "round": 0}
            for thread in range(THREADS):
                one = {"rank": rank, "block": block, "thread": thread, "state": state}
                one |= {"done": False, "seen": 0, "wants": None}
                one["code"] = self._code(one)
                threads.append(one)
        return threads

    def _step(self, t):
        """Let a thread do one thing; return whether it could."""
        if t["done"]:
            return False
        if t["wants"] is not None and not t["wants"]():
            return False
        t["wants"] = next(t["code"], "end")
        if t["wants"] == "end":
            t["done"], t["wants"] = True, None
        return True

    def _deliver(self):
        """Move what some port channel has to move next."""
        full = [key for key, queue in self.lanes.items() if queue]
        if not full:
            return False
        self.lanes[self.rng.choice(full)].pop(0)()
        return True

    def _code(self, t):
        for op in t["block"]["ops"]:
            if op["name"] != "pipeline":
                yield from self._op(t, op, 0, None)
                continue
            unit = op["iter_context"]["unit_size"] // self.shrink // GRAIN
            for turn in range(-(-op["iter_context"]["num_chunks"] * self.chunk // unit)):
                for inner in op["ops"]:
                    yield from self._op(t, inner, turn * unit, unit)

    def _op(self, t, op, offset, unit):
        name, thread = op["name"], t["thread"]
        if name == "nop":
            yield self._barrier(t)
        elif name in ("signal", "wait", "sem_acquire", "sem_release"):
            for k in op.get("channel_ids", op.get("semaphore_ids", ()))[thread::THREADS]:
                yield from self._count(t, op, k)
        elif op.get("channel_type") == "port" and name != "rppkt":
            for k in range(thread, len(op["dst_buff"]), THREADS):
                self._post(t, op, k, offset, unit)
                yield lambda: True
        elif name in ("glres", "gstore"):
            self._switched(t, op, offset, unit)
            yield lambda: True
        elif name in PACKETS:
            yield from self._packets(t, op)
        else:
            self._move(t, op, offset, unit)
            yield lambda: True

    def _barrier(self, t):
        state = t["state"]
        mine = state["round"]
        state["waiting"] += 1
        if state["waiting"] == THREADS:
            state["waiting"], state["round"] = 0, mine + 1
        return lambda: state["round"] > mine

    def _channel(self, t, kind, k):
        lists = [c for c in t["block"]["channels"] if c["channel_type"] == kind]
        return kind, t["rank"], [k for c in lists for k in c["channel_ids"]][k]

    def _count(self, t, op, k):
        if op["name"].startswith("sem"):
            values = self.semaphores[t["rank"]]
            if op["name"] == "sem_acquire":
                yield lambda: values[k] > 0
                values[k] -= 1
            else:
                values[k] += 1
            return
        end = self._channel(t, op["channel_type"], k)
        if op["name"] == "wait":
            yield lambda: self.counters[end] > 0
            self.counters[end] -= 1
        elif op["channel_type"] == "port":
            self.lanes.setdefault(end, []).append(lambda: self._raise(end))
            yield lambda: True
        else:
            self._raise(end)
            yield lambda: True

    def _raise(self, end):
        self.counters[self.partner[end]] += 1

    def _where(self, t, op, operand, offset, unit, packets):
        """Return an array, its flags, and the first element and number of an operand."""
        rank, kind = t["rank"], operand.get("type")
        if kind is None:
            way = op.get("channel_type", "memory")
            refs = [r for r in t["block"]["remote_buffer_refs"] if r["access_channel_type"] == way]
            number = refs[0]["remote_buffer_ids"][operand["buffer_id"]]
            remote = self.gpus[t["rank"]]["remote_buffers"][number]
            rank, kind = remote["rank"], remote["type"]
        size = operand["size"] * self.chunk
        length = size if unit is None else min(size - offset, unit)
        if kind != "s":
            call = self.calls[self.launch[t["rank"]]]
            array = call[0 if kind == "i" else 1][rank]
            return array, None, operand["index"] * self.chunk + offset, length
        slot = self._slot(t)
        first = operand["index"] * min(self.chunk, slot) + offset % slot
        if packets:
            first *= 2
        if self.double and self.launch[t["rank"]] % 2:
            first += self.half
        return self.scratch[rank], self.flag[rank], first, length

    def _slot(self, t):
        """Return the length of a slot as the rank that executes an operation counts it."""
        return self.slots[t.get("by", t["rank"])]

    def _half(self, t, count):
        """Return which elements are this thread's."""
        return range(t["thread"], count, THREADS)

    def _move(self, t, op, offset, unit):
        dst = [self._where(t, op, o, offset, unit, False) for o in op["dst_buff"]]
        src = []
        for k, operand in enumerate(op["src_buff"]):
            shift = offset
            if op["name"] in ("re", "res") and k:
                # The handler wraps as the target at the same place would (contract T1).
                other = op["dst_buff"][k] if k < len(op["dst_buff"]) else {}
                wraps = other.get("type") == "s" or other.get("buffer_id") == 2
                shift = offset % self._slot(t) if wraps else offset
                array, flags, first, length = self._where(t, op, operand, 0, unit, False)
                src.append((array, flags, first + shift, min(length, dst[0][3])))
                continue
            src.append(self._where(t, op, operand, shift, unit, False))
        if op["name"] == "put":
            for one, other in zip(src, dst, strict=True):
                for e in self._half(t, other[3]):
                    other[0][other[2] + e] = one[0][one[2] + e]
            return
        targets = dst[:1] if op["name"] == "re" else dst
        for e in self._half(t, dst[0][3]):
            total = sum(array[first + e] for array, _, first, _ in src)
            for array, _, first, _ in targets:
                array[first + e] = total

    def _switched(self, t, op, offset, unit):
        """Add up a part of all ranks' buffers, or take one's own, and store it at all ranks."""
        groups = [
            (c["buffer_type"], group["ranks"])
            for c in self.gpus[t["rank"]]["channels"]
            if c["channel_type"] == "switch"
            for group in c["rank_groups"]
        ]
        mine = next(c for c in t["block"]["channels"] if c["channel_type"] == "switch")
        ends = []
        for operand in (op["src_buff"][0], op["dst_buff"][0]):
            at = {"index": operand["index"], "size": operand["size"]}
            kind, ranks = operand.get("type"), [t["rank"]]
            if "switch_channel_id" in operand:
                kind, ranks = groups[mine["channel_ids"][operand["switch_channel_id"]]]
            places = [{**t, "rank": rank, "by": t["rank"]} for rank in ranks]
            one = {**at, "type": kind}
            ends.append([self._where(p, op, one, offset, unit, False) for p in places])
        for e in self._half(t, ends[1][0][3]):
            total = sum(array[first + e] for array, _, first, _ in ends[0])
            for array, _, first, _ in ends[1]:
                array[first + e] = total

    def _post(self, t, op, k, offset, unit):
        packets = op["name"] == "ppkt"
        one = self._where(t, op, op["src_buff"][k], offset, unit, packets)
        other = self._where(t, op, op["dst_buff"][k], offset, unit, packets)
        end = self._channel(t, "port", op["channel_ids"][k])

        def put():
            width = one[3] * (2 if packets else 1)
            other[0][other[2] : other[2] + width] = one[0][one[2] : one[2] + width]
            if packets:
                other[1][other[2] : other[2] + width] = one[1][one[2] : one[2] + width]
            if op["name"] == "pws":
                self._raise(end)

        self.lanes.setdefault(end, []).append(put)

    def _packets(self, t, op):
        name, launch = op["name"], self.launch[t["rank"]]
        first_packet = {"rppkt": 0, "upkt": 0, "repkt": 1, "respkt": 1}.get(name, 9)
        after = {"ppkt": 0, "rppkt": 0, "cpkt": 0, "respkt": 1}.get(name, 9)
        where = lambda o, p: self._where(t, op, o, 0, None, p)  # noqa: E731 - one line
        src = [where(o, k >= first_packet) for k, o in enumerate(op["src_buff"])]
        port = op.get("channel_type") == "port"
        dst = [where(o, k >= after) for k, o in enumerate(op["dst_buff"])]
        for e in self._half(t, src[0][3]):
            total = 0
            for k, (array, flags, first, _) in enumerate(src):
                if k >= first_packet:
                    at = first + 2 * e
                    yield lambda flags=flags, at=at: flags[at] == launch
                    total += array[at]
                else:
                    total += array[first + e]
            for k, (array, flags, first, _) in enumerate(dst):
                if port:
                    continue
                if k >= after:
                    array[first + 2 * e], flags[first + 2 * e] = total, launch
                else:
                    array[first + e] = total
        yield lambda: True
        if port:
            yield self._barrier(t)
            for k in range(t["thread"], len(dst), THREADS):
                self._forward(t, op, k, src[0], dst[k])

    def _forward(self, t, op, k, one, other):
        end = self._channel(t, "port", op["channel_ids"][k])

        def put():
            for side in (0, 1):
                other[side][other[2] : other[2] + 2 * one[3]] = one[side][
                    one[2] : one[2] + 2 * one[3]
                ]

        self.lanes.setdefault(end, []).append(put)
