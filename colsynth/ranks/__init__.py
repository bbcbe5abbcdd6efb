"""The numbering of ranks that a schedule needs, for each launcher, and orders that are faster.

`placement_of` says on which host and GPU each rank runs, `launch` what a launcher needs to number
ranks so. `reorder` finds an order of hosts, from a topology or a measured matrix.
"""

from colsynth.ranks.hosts import Place, placement_of, require_slots
from colsynth.ranks.launchers import LAUNCHERS, Launch, launch, require_launcher, takes_file
from colsynth.ranks.matrix import Network, network_of_logs, read_matrices
from colsynth.ranks.reorder import Reordered, reorder, reorder_topology, reordered

__all__ = [
    "LAUNCHERS",
    "Launch",
    "Network",
    "Place",
    "Reordered",
    "launch",
    "network_of_logs",
    "placement_of",
    "read_matrices",
    "reorder",
    "reorder_topology",
    "reordered",
    "require_launcher",
    "require_slots",
    "takes_file",
]
