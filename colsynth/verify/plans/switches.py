"""Rules P04 to P06 and P14 for switches that multicast and reduce (NVLS, contract 2 and 4)."""

from __future__ import annotations

from collections import Counter

from colsynth.runtimes.plans.form import Block, Op, Plan, PlanGpu
from colsynth.runtimes.rules import Findings
from colsynth.verify.plans.lists import BUFFERS, block_lists, chunks_in, switch_groups


def lint_groups(plan: Plan, gpu: PlanGpu, rank: int, findings: Findings) -> None:
    """Check the switch channels of a GPU."""
    for kind, group in switch_groups(gpu):
        ranks = group.ranks
        known = all(0 <= one < len(plan.gpus) for one in ranks)
        if kind not in BUFFERS or not known or group.size != len(ranks):
            text = f"a switch channel joins buffer {kind!r} of ranks {list(ranks)}"
            findings.add("P05", f"{text}, given as {group.size}", rank)
        elif rank not in ranks or len(set(ranks)) < len(ranks):
            findings.add("P05", f"a switch channel joins ranks {list(ranks)}", rank)
        elif kind != "s":
            text = f"buffer {kind!r} is reached over a switch: every rank must"
            findings.add("P14", f"{text} pass it at the same offset of its allocation", rank)


def lint_group_pairs(plan: Plan, findings: Findings) -> None:
    """Check that all ranks of a switch channel list it equally often (P06)."""
    counts = [
        Counter((kind, tuple(sorted(group.ranks))) for kind, group in switch_groups(gpu))
        for gpu in plan.gpus
    ]
    for rank, count in enumerate(counts):
        for (kind, ranks), found in sorted(count.items()):
            for other in ranks:
                if counts[other][kind, ranks] != found:
                    text = f"rank {other} lists another number of switch channels"
                    findings.add("P06", f"{text} of buffer {kind!r} of {list(ranks)}", rank)
                    break


def lint_switch(
    plan: Plan, gpu: PlanGpu, rank: int, block: Block, op: Op, step: int, findings: Findings
) -> None:
    """Check an operation over a switch."""

    def add(rule: str, text: str) -> None:
        findings.add(rule, f"{op.name} {text}", rank, block.id, step)

    if len(op.src_buff) != 1 or len(op.dst_buff) != 1:
        add("P04", "needs one source and one destination")
        return
    source, target = op.src_buff[0], op.dst_buff[0]
    if source.size != target.size:
        add("P04", "has operands of different sizes")
    groups, listed = switch_groups(gpu), block_lists(block)["switch"]
    for operand, switched in ((source, op.name == "glres"), (target, True)):
        if (operand.switch_channel_id is not None) != switched:
            add("P04", f"needs {'a switch channel' if switched else 'a buffer of its own'}")
            continue
        kind = operand.type or ""
        ranks: tuple[int, ...] = (rank,)
        if operand.switch_channel_id is not None:
            place = operand.switch_channel_id
            if not 0 <= place < len(listed) or not 0 <= listed[place] < len(groups):
                add("P05", "uses a switch channel that the threadblock lacks")
                continue
            kind, ranks = groups[listed[place]][0], groups[listed[place]][1].ranks
        for one in ranks:
            known = 0 <= one < len(plan.gpus)
            chunks = (chunks_in(plan.gpus[one], kind) or 0) if known else 0
            if not 0 <= operand.index <= chunks - operand.size or operand.size < 1:
                add("P05", f"reaches chunk {operand.index} of {chunks} of rank {one}")
                break
