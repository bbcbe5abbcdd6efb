"""What the links of a machine carry: from the user, the file, or the table of generations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError
from colsynth.topology.importers import rates
from colsynth.topology.importers.machine import Machine, Nic, Pcie
from colsynth.topology.importers.plan import Rate
from colsynth.topology.importers.rates import Figure

_OLDEST = Pcie(Fraction(8), 16)
"""What NCCL takes for a PCIe link that it cannot read."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user says beside the file.

    Parameters
    ----------
    basis : str
        Of bandwidths: ``"spec"``, ``"library"`` or ``"measured"``.
    gpu : str
        Generation; empty where the file is to say it.
    nic_rate : Fraction or None
        Bytes per second of every NIC.
    """

    basis: str = "spec"
    gpu: str = ""
    nic_rate: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Speeds:
    """The figures of one machine, as the user wishes them."""

    machine: Machine
    wishes: Wishes

    def model(self, gpu: int) -> str:
        """Return the generation of a GPU."""
        return self.wishes.gpu or self.machine.gpus[gpu].model

    @staticmethod
    def rate(kind: str, figure: Figure, latency: str) -> Rate:
        """Return a bandwidth with the latency of its kind of link."""
        delay = rates.latency(latency)
        return Rate(kind, figure.value, figure.source, kind, delay.value, delay.source)

    def link(self, i: int, j: int) -> Figure:
        """Return the bandwidth of one link between two GPUs.

        Raises
        ------
        InputError
            CS153: the generation of one of them is not known, or has no such links.
        """
        models = self.model(i), self.model(j)
        found = [rates.link_rate(self.machine.medium, x, self.wishes.basis) for x in models]
        if found[0] is None or found[1] is None:
            rank, model = (i, models[0]) if found[0] is None else (j, models[1])
            at = self.machine.gpus[rank].at
            phrase = "the bandwidth of the links between these GPUs is not known"
            advice = "name the GPU, such as --gpu h100 or --gpu mi250"
            if rates.row(self.machine.medium, model):
                phrase = f"{self.machine.file} shows NVLinks of this GPU, but {model} has none"
                advice = "check the counts in the file"
            if self.wishes.gpu:
                advice = "--gpu names a GPU without such links: leave it out, or name another"
            raise InputError(Diagnostic("CS153", phrase, at, help=advice))
        return min(found[0], found[1], key=lambda figure: figure.value)

    def slot(self, link: Pcie | None) -> Figure:
        """Return the bandwidth of a PCIe link; of an unknown one, that of the GPUs' generation."""
        if link is not None:
            return self.pcie(link)
        entry = rates.row(self.machine.medium, self.model(0))
        figure = self.pcie(Pcie(Fraction(entry["pcie"]), 16) if entry else _OLDEST)
        return replace(figure, source=f"{figure.source}; assumed, not in the file")

    def pcie(self, link: Pcie) -> Figure:
        """Return the bandwidth of a known PCIe link."""
        return rates.pcie_rate(link, self.wishes.basis)

    def of_nic(self, nic: Nic) -> Fraction | None:
        """Return the bytes per second of a NIC; None where nobody tells."""
        return self.wishes.nic_rate or nic.rate

    def nic(self, nic: Nic) -> Rate:
        """Return the rate of a NIC, zero where nobody tells."""
        speed = self.of_nic(nic) or Fraction(0)
        source = f"{float(speed * 8 / 10**9):g} Gb/s in {self.machine.file}"
        if self.wishes.nic_rate is not None:
            source = "--nic-bandwidth"
        return self.rate("nic", Figure(speed, source), "nic")
