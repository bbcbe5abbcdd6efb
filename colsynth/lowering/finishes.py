"""Whether the threadblocks of a program come to their ends."""

from __future__ import annotations

from collections import Counter, defaultdict

from colsynth.model import RECEIVES, SENDS, ThreadblockProgram


def finishes(program: ThreadblockProgram) -> bool:
    """Return whether every step of an iteration is reached, where all its messages have slots.

    Then no iteration hangs if each begins behind the one before, as in a plan. A wait for a later
    step of the same threadblock never ends.
    """
    at = [[0] * len(gpu.threadblocks) for gpu in program.gpus]
    sent: Counter[tuple[int, int, int]] = Counter()
    taken: Counter[tuple[int, int, int]] = Counter()
    ready = [(gpu.rank, block.id) for gpu in program.gpus for block in gpu.threadblocks]
    waiting: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    while ready:
        rank, number = ready.pop()
        block = program.gpus[rank].threadblocks[number]
        while at[rank][number] < len(block.steps):
            step = block.steps[at[rank][number]]
            into = [(peer, rank, channel) for peer, channel in step.folds]
            if step.op in RECEIVES:
                into.append((block.recv or 0, rank, block.channel))
            missing: list[tuple[int, ...]] = [end for end in into if taken[end] == sent[end]]
            missing += [(rank, w.threadblock) for w in step.waits if at[rank][w[0]] <= w.step]
            if missing:
                waiting[missing[0]].append((rank, number))
                break
            at[rank][number] += 1
            taken.update(into)
            ready += waiting.pop((rank, number), ())
            if step.op in SENDS:
                out = (rank, block.send or 0, block.channel)
                sent[out] += 1
                ready += waiting.pop(out, ())
    return at == [[len(block.steps) for block in gpu.threadblocks] for gpu in program.gpus]
