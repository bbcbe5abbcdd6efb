"""The passes by name, loaded only when asked for.

To add a pass: write the class as :mod:`colsynth.pipeline.interface` says, and add
its line to `_PASSES`. A test holds names, files and classes together.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, cast

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.pipeline.contract import check_pass
from colsynth.pipeline.interface import Pass
from colsynth.pipeline.options import Option, options_of
from colsynth.pipeline.spec import TEXT_NAME, OptionSpec, PassSpec

_PASSES = {
    "pack-trees": "colsynth.synthesis.pack_trees:PackTrees",
    "pack-roots": "colsynth.synthesis.pack_roots:PackRoots",
    "grow-trees": "colsynth.synthesis.grow_trees:GrowTrees",
    "pack-in-network": "colsynth.synthesis.pack_in_network:PackInNetwork",
    "match-chunks": "colsynth.synthesis.timed.match_chunks:MatchChunks",
    "solve-exact": "colsynth.synthesis.exact.solve_exact:SolveExact",
    "build-ring": "colsynth.synthesis.baselines.build_ring:BuildRing",
    "build-tree": "colsynth.synthesis.baselines.build_tree:BuildTree",
    "build-halving-doubling": (
        "colsynth.synthesis.baselines.build_halving_doubling:BuildHalvingDoubling"
    ),
    "build-hierarchical": "colsynth.synthesis.baselines.build_hierarchical:BuildHierarchical",
    "build-stars": "colsynth.synthesis.baselines.build_stars:BuildStars",
    "build-relays": "colsynth.synthesis.baselines.build_relays:BuildRelays",
    "build-all-pairs": "colsynth.synthesis.baselines.build_all_pairs:BuildAllPairs",
    "build-pairwise": "colsynth.synthesis.baselines.build_pairwise:BuildPairwise",
    "build-rails": "colsynth.synthesis.baselines.build_rails:BuildRails",
    "build-pipelined": "colsynth.synthesis.baselines.build_pipelined:BuildPipelined",
    "build-two-level": "colsynth.synthesis.baselines.build_two_level:BuildTwoLevel",
    "round-weights": "colsynth.lowering.round_weights:RoundWeights",
    "lower-forest": "colsynth.lowering.lower_forest:LowerForest",
    "lower-timed": "colsynth.lowering.lower_timed:LowerTimed",
    "coalesce-chunks": "colsynth.lowering.coalesce_chunks:CoalesceChunks",
    "order-transfers": "colsynth.lowering.order_transfers:OrderTransfers",
    "place-slots": "colsynth.lowering.place_slots:PlaceSlots",
    "assign-threadblocks": "colsynth.lowering.assign_threadblocks:AssignThreadblocks",
    "spell-dependencies": "colsynth.lowering.spell_dependencies:SpellDependencies",
    "build-multicast": "colsynth.lowering.build_multicast:BuildMulticast",
    "lower-rounds": "colsynth.lowering.lower_rounds:LowerRounds",
}

_LOWERING = "coalesce-chunks,order-transfers,place-slots,assign-threadblocks,spell-dependencies"
_SPREAD = _LOWERING.replace("assign-threadblocks", "assign-threadblocks{strategy=spread}")
_BALANCED = _LOWERING.replace("assign-threadblocks", "assign-threadblocks{strategy=balanced}")
_DUPLEX = _LOWERING.replace("assign-threadblocks", "assign-threadblocks{strategy=duplex}")
_MERGED = _LOWERING.replace("coalesce-chunks", "coalesce-chunks{merge=4096}")
_JOINED = _SPREAD.replace("place-slots", "place-slots{sums=joined}")

ALGORITHMS = {
    "forest": f"pack-trees,round-weights,lower-forest,{_SPREAD}",
    "roots": f"pack-roots,round-weights,lower-forest{{fill=true}},{_SPREAD}",
    "ten": f"match-chunks{{gap=latency}},lower-timed,{_SPREAD}",
    "exact": f"solve-exact{{intervals=false,fallback=false}},lower-timed,{_SPREAD}",
    "bfb": f"grow-trees,round-weights,lower-forest,{_SPREAD}",
    "ring": f"build-ring,lower-forest{{lockstep=true}},{_DUPLEX}",
    "tree": f"build-tree,{_LOWERING.removeprefix('coalesce-chunks,')}",
    "halving-doubling": f"build-halving-doubling,{_MERGED}",
    "hierarchical": f"build-hierarchical,lower-forest,{_LOWERING}",
    "allpairs": f"build-all-pairs,{_JOINED}",
    "allpairs2": f"build-stars,lower-forest,{_LOWERING}",
    "relays": f"build-relays,round-weights,lower-forest,{_SPREAD}",
    "rails": "build-rails,assign-threadblocks{strategy=paired},spell-dependencies",
    "pipelined": f"build-pipelined,{_SPREAD.partition('place-slots,')[2]}",
    "pairwise": f"build-pairwise,{_LOWERING}",
    "two-level": f"build-two-level,{_BALANCED}",
    "multicast": "build-multicast",
}
"""The pipeline of each algorithm, from a Problem to a ThreadblockProgram."""

AUTO = "auto"
"""The algorithm that stands for the highest level of search."""

ADDED: set[str] = set()
"""The algorithms that users added to this process (`colsynth.pipeline.added`)."""


def pipeline_of(algorithm: str, *, rounds: bool = False) -> str:
    """Return the pipeline of an algorithm of `ALGORITHMS`; with `rounds`, to a RoundProgram."""
    text = ALGORITHMS[algorithm]
    if not rounds:
        return text
    if "place-slots" not in text:  # slots are placed already
        return f"{text.partition(',assign-threadblocks')[0]},lower-rounds"
    return f"{text.partition(',order-transfers')[0]},place-slots,lower-rounds"


@dataclasses.dataclass(frozen=True)
class Registry:
    """A table from names to passes.

    Parameters
    ----------
    places : dict
        ``"module:Class"`` of each pass, in the order of the walk.
    added : dict
        The classes of passes that users added to this process.
    """

    places: dict[str, str]
    added: dict[str, type] = dataclasses.field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return all names; loads nothing."""
        return (*self.places, *self.added)

    @property
    def own(self) -> tuple[type, ...]:
        """The passes that users added."""
        return tuple(self.added.values())

    def load(self, name: str, span: Span | None = None) -> type[Any]:
        """Return the class of a pass.

        Raises
        ------
        InputError
            CS202 when there is no pass of that name, CS225 when its class is not one.
        """
        if name in self.added:
            return self.added[name]
        if name not in self.places:
            raise InputError(
                Diagnostic(
                    "CS202",
                    f"there is no pass {name!r}",
                    span,
                    help=did_you_mean(name, self.names()),
                )
            )
        module, _, attribute = self.places[name].partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ModuleNotFoundError, AttributeError) as fault:
            advice = "write its module and class as the table in colsynth/pipeline/registry.py"
            phrase = f"pass {name!r} cannot be loaded: {fault}"
            raise InputError(Diagnostic("CS225", phrase, span, help=advice)) from fault
        check_pass(found)
        return cast("type[Any]", found)

    def build(self, spec: PassSpec) -> Pass:
        """Return the pass that `spec` describes.

        Raises
        ------
        InputError
            CS202 for an unknown pass, CS203 for an unknown or repeated option, CS204
            for a value that the option does not take.
        """
        pass_type = self.load(spec.name, Span(TEXT_NAME, 1, spec.column))
        known = {option.name: option for option in options_of(pass_type)}
        values: dict[str, Any] = {}
        for written in spec.options:
            option = _known_option(spec.name, written, known, values)
            values[option.field] = _value(spec.name, written, option)
        return cast("Pass", pass_type(**values))


DEFAULT = Registry(_PASSES)
"""All passes of this package."""


def spec_of(item: Pass) -> PassSpec:
    """Return the shortest spec that builds an equal pass: only what differs from the default."""
    return PassSpec(
        item.name,
        tuple(
            _written(option, getattr(item, option.field))
            for option in options_of(type(item))
            if getattr(item, option.field) != option.default
        ),
    )


def _written(option: Option, value: Any) -> OptionSpec:
    text = option.to_text(value)
    return OptionSpec(option.name, value if text[:1] == '"' else text, text[:1] == '"')


def _known_option(
    owner: str, written: OptionSpec, known: dict[str, Option], given: dict[str, Any]
) -> Option:
    span = Span(TEXT_NAME, 1, written.column)
    option = known.get(written.name)
    if option is None:
        phrase = f"pass {owner!r} has no option {written.name!r}"
        advice = did_you_mean(written.name, known) if known else "this pass takes no options"
        raise InputError(Diagnostic("CS203", phrase, span, help=advice))
    if option.field in given:
        phrase = f"option {written.name!r} of pass {owner!r} is given twice"
        raise InputError(Diagnostic("CS203", phrase, span, help="keep one of them"))
    return option


def _value(owner: str, written: OptionSpec, option: Option) -> Any:
    try:
        return option.from_text(written.text, quoted=written.quoted)
    except ValueError:
        raise InputError(
            Diagnostic(
                "CS204",
                f"option {written.name!r} of pass {owner!r} cannot be {written.text!r}",
                Span(TEXT_NAME, 1, written.column),
                notes=(f"expected {option.kind}",),
                help=f"the default is {option.to_text(option.default)}",
            )
        ) from None
