"""What hardware and protocols cost: the constants of lowering and the simulator, as data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from colsynth.runtimes.profile import Profile

PROTOCOLS = ("Simple", "LL", "LL128")


@dataclass(frozen=True)
class Model:
    """Every constant; values and sources are in ``models.yaml``.

    Parameters
    ----------
    link_efficiency, network_efficiency : float
        Share of a link's bandwidth that protocols of the wire leave, within a box and on
        links that end at a NIC or leave a box.
    payload : mapping
        Share of the bytes on the wire that is data, by protocol.
    rate : mapping
        What one threadblock sends or receives, GB/s of payload, by protocol.
    local_rate : mapping
        What one threadblock copies or adds within its GPU, GB/s, by protocol.
    operand : float
        What each further operand of a sum takes, where a runtime adds up several in one go, as a
        share of a sum of two.
    launch : mapping
        Microseconds from the call to the first step and after the last, by protocol.
    step : mapping
        Microseconds for which every primitive call keeps its threadblock busy.
    hop, network_hop : mapping
        Microseconds that a message takes beside the latency of the links, by protocol,
        on routes within a box and on others.
    wait : float
        Microseconds that a step with a dependency starts after it is met.
    round, post : float
        Microseconds for which the host is busy with a round, and with each message that the rank
        sends or receives and each local step. Used for rounds only: elsewhere the GPU reads the
        program itself.
    slices : mapping
        Parts in which a primitive call is passed on, by protocol.
    least_slice : mapping
        Bytes that the parts of a call have at least, by protocol.
    sources : mapping
        Where each number comes from, by field.
    """

    link_efficiency: float
    network_efficiency: float
    payload: Mapping[str, float]
    rate: Mapping[str, float]
    local_rate: Mapping[str, float]
    operand: float
    launch: Mapping[str, float]
    step: Mapping[str, float]
    hop: Mapping[str, float]
    network_hop: Mapping[str, float]
    wait: float
    round: float
    post: float
    slices: Mapping[str, int]
    least_slice: Mapping[str, int]
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def digest(self) -> str:
        """Checksum of the constants, in hexadecimal."""
        return sha256(repr(self).encode()).hexdigest()


NAMES = tuple(item.name for item in fields(Model) if item.name != "sources")
"""The constants, in the order in which they are shown."""


def default_model(profile: Profile) -> Model:
    """Return the model of a runtime: the numbers of ``models.yaml``."""
    return _models()[profile.family]


def defaults_of(runtime: str) -> Model | None:
    """Return the model of a runtime by name; None where there is no such runtime."""
    return _models().get(runtime)


class Judge(Protocol):
    """What decides by constants: a target or a case of a search.

    `model` is None where the constants of the runtime hold.
    """

    @property
    def profile(self) -> Profile:
        """The runtime."""

    @property
    def model(self) -> Model | None:
        """The constants given, if any."""


def model_of(judge: Judge) -> Model:
    """Return the constants that decisions follow: those given, or those of the runtime."""
    return default_model(judge.profile) if judge.model is None else judge.model


def ideal_model() -> Model:
    """Return a model of links alone: nothing else takes time, and no bandwidth is lost.

    For laws and bounds: a program takes the latencies and bandwidths of the topology.
    """

    def same(value: Any) -> Mapping[str, Any]:
        return dict.fromkeys(PROTOCOLS, value)

    return Model(
        link_efficiency=1.0,
        network_efficiency=1.0,
        payload=same(1.0),
        rate=same(float("inf")),
        local_rate=same(float("inf")),
        operand=1.0,
        launch=same(0.0),
        step=same(0.0),
        hop=same(0.0),
        network_hop=same(0.0),
        wait=0.0,
        round=0.0,
        post=0.0,
        slices=same(1),
        least_slice=same(1),
    )


@cache
def _models() -> dict[str, Model]:
    from colsynth.runtimes.data import read_data

    document = read_data("cost", "models.yaml")
    return {name: _model(entry) for name, entry in document.items()}


def _model(entry: dict[str, dict[str, Any]]) -> Model:
    values = {key: item["is"] for key, item in entry.items()}
    return Model(**values, sources={key: item["source"] for key, item in entry.items()})
