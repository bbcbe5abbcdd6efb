"""What is odd about a machine, as warnings: the traps that files of every format share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from colsynth.errors import Diagnostic, Span
from colsynth.topology.importers import rates
from colsynth.topology.importers.machine import NUMBERED, SWITCHED, Bond, Gpu, Machine
from colsynth.units import plural

_FEW = 4
"""Of so many GPUs, one may be the exception; of fewer, each is as usual as the others."""

_DEAD = "look for dead links with nvidia-smi nvlink -s, or amd-smi xgmi"

_QUAD = 4
"""GPUs of a node of MI300A, each joined to each."""


def warning(
    code: str, phrase: str, at: Span | None, *notes: str, advice: str | None = None
) -> Diagnostic:
    """Return a warning; its code begins with W."""
    return Diagnostic(code, phrase, at, notes, advice)


def bond_doubts(machine: Machine) -> tuple[Diagnostic, ...]:
    """Return the warnings on the ranks of a machine's GPUs, and on the links between them."""
    few = tuple(_outliers(machine)) or tuple(_weak_pair(machine))
    return (*_other_numbers(machine), *few, *_one_sided(machine))


def kind_doubts(machine: Machine, models: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Return the warnings on links that do not fit the GPUs.

    Parameters
    ----------
    machine : Machine
    models : sequence of str
        The generation of each GPU, from ``--gpu`` or else from the file.
    """
    ones = _all_ones(machine, set(models))
    return (*ones, *_too_many(machine, models), *_other_kinds(machine, models))


def kind_of(medium: str, model: str) -> str:
    """Return what diagnostics call a kind of GPU: its generation, and that of its links."""
    return f"{model} ({rates.row(medium, model).get('title', 'unknown')})"


def _other_kinds(machine: Machine, models: Sequence[str]) -> Iterable[Diagnostic]:
    """Name GPUs whose kind in the file is not that of ``--gpu``, or of the first GPU."""
    guessed = any(x.code == "W16" for x in machine.warnings)
    for gpu, model in zip(machine.gpus, models, strict=True):
        seen = f"{_called(gpu)} is {kind_of(machine.medium, gpu.model)}"
        if gpu.model and gpu.model != model and not guessed:
            phrase = f"{seen}, but --gpu says {kind_of(machine.medium, model)}"
            yield warning("W28", phrase, gpu.at, "--gpu counts")
        elif model and models[0] and model != models[0]:
            first = f"{_called(machine.gpus[0])} is {kind_of(machine.medium, models[0])}"
            note = "links between them have the lower bandwidth"
            yield warning("W28", f"{seen}, but {first}", gpu.at, note)


def _too_many(machine: Machine, models: Sequence[str]) -> Iterable[Diagnostic]:
    """Name GPUs with more links than their chip has."""
    totals = machine.links_of()
    for i, gpu in enumerate(machine.gpus):
        entry = rates.row(machine.medium, models[i])
        if entry and totals[i] > entry["links"]:
            usual = f"{kind_of(machine.medium, models[i])} has {entry['links']}"
            phrase = f"{_called(gpu)} has {plural(totals[i], 'link')}, but {usual}"
            advice = "check the counts in the file, and --gpu"
            yield warning("W27", phrase, gpu.at, "the topology counts all of them", advice=advice)


def _all_ones(machine: Machine, models: set[str]) -> Iterable[Diagnostic]:
    """Old drivers of ROCm counted one link wherever there is any."""
    counts = {bond.count for bond in machine.bonds}
    clique = len(machine.gpus) == _QUAD and len(machine.bonds) == _QUAD * (_QUAD - 1)
    small = models == {"gfx942"} and clique  # four of eight MI300X look alike
    if counts == {1} and len(machine.gpus) > 2 and (models == {"gfx90a"} or small):
        chip = (
            "an MI250 (gfx90a) has 4, 2 and 1" if not small else "an MI300A, unlike MI300X, has 2"
        )
        phrase = f"every xGMI count is 1, but {chip} links between its GPUs"
        note = "old versions of ROCm write 1 for any number; the bandwidth is too low then"
        advice = "dump again with a newer RCCL, or use a preset"
        yield warning("W03", phrase, machine.bonds[0].at, note, advice=advice)


def _other_numbers(machine: Machine) -> Iterable[Diagnostic]:
    """Name the first GPU whose number is not its rank: another one is hidden, or broken."""
    for rank, gpu in enumerate(machine.gpus):
        if NUMBERED.fullmatch(gpu.name) and gpu.name != f"GPU{rank}":
            phrase = f"rank {rank} is {gpu.name}: ranks and devices differ"
            note = "ranks follow the order of the file; CUDA and HIP count what they see from 0"
            advice = (
                "let the job see these GPUs alone, in this order "
                "(CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES)"
            )
            yield warning("W04", phrase, gpu.at, note, advice=advice)
            return


def _outliers(machine: Machine) -> Iterable[Diagnostic]:
    """Name GPUs with fewer links than most."""
    totals = machine.links_of()
    if not totals:
        return
    groups = Counter(totals[i] for i in range(len(machine.gpus)))
    usual, often = groups.most_common(1)[0]
    few = max(len(machine.gpus) // _FEW, 1)
    if len(machine.gpus) < _FEW or not 0 < len(machine.gpus) - often <= few:
        return
    for i, gpu in enumerate(machine.gpus):
        if totals[i] != usual:
            phrase = f"{_called(gpu)} has {plural(totals[i], 'link')}, most others have {usual}"
            yield warning("W12", phrase, gpu.at, advice=_DEAD)


def _weak_pair(machine: Machine) -> Iterable[Diagnostic]:
    """Name the two GPUs that fewer links join than any other two.

    A dead link takes one from both, so of four GPUs half have fewer, and none is the exception.
    """
    counts = dict.fromkeys(combinations(range(len(machine.gpus)), 2), 0)
    for bond in machine.bonds:
        if bond.target == SWITCHED:
            return
        if bond.source < bond.target:
            counts[bond.source, bond.target] += bond.count
    (weak, least), *others = sorted(counts.items(), key=lambda item: item[1]) or [((0, 0), 0)]
    usual = max((count for _, count in others), default=0)
    if len(machine.gpus) >= _FEW and all(least < count == usual for _, count in others):
        one, other = (_called(machine.gpus[place]) for place in weak)
        phrase = f"{plural(least, 'link')} between {one} and {other}, all others have {usual}"
        yield warning("W12", phrase, machine.gpus[weak[0]].at, advice=_DEAD)


def _one_sided(machine: Machine) -> Iterable[Diagnostic]:
    counts = {(x.source, x.target): x for x in machine.bonds if x.target != SWITCHED}
    for (source, target), bond in counts.items():
        back = counts.get((target, source))
        if source < target and back is not None and back.count != bond.count:
            yield _differs(machine, bond, back.count)
        elif back is None:
            yield _differs(machine, bond, 0)


def mutual(machine: Machine) -> Machine:
    """Return a machine without links that only one of two GPUs lists.

    The smaller number counts: a library that follows each list uses the pair in one direction
    only, and a link that is not there would make every figure too fast.
    """
    known = {(bond.source, bond.target) for bond in machine.bonds}
    kept = (x for x in machine.bonds if x.target == SWITCHED or (x.target, x.source) in known)
    return replace(machine, bonds=tuple(kept))


def _differs(machine: Machine, bond: Bond, back: int) -> Diagnostic:
    names = machine.gpus[bond.source].name, machine.gpus[bond.target].name
    phrase = f"{plural(bond.count, 'link')} from {names[0]} to {names[1]}, but {back} back"
    note = "both get the smaller number" if back else "what only one of them lists is left out"
    return warning("W13", phrase, bond.at, note)


def _called(gpu: Gpu) -> str:
    """Return a bus id behind the word GPU, or what nvidia-smi calls it: GPU0."""
    return gpu.name if gpu.name.startswith("GPU") else f"GPU {gpu.name}"


def similar_presets(gpus: int, nics: int) -> str:
    """Return the presets with as many GPUs and NICs, separated by commas."""
    from colsynth.topology.load import load
    from colsynth.topology.presets import presets

    found = []
    for preset in presets():
        machine = load(preset.name, nodes=2)
        kinds = Counter(node.kind.value for node in machine.nodes if node.box == 0)
        if kinds["gpu"] == gpus and kinds["nic"] == nics:
            found.append(preset.name)
    return ", ".join(found)
