"""Files of machines, fabrics and other tools -> a topology file with the source of every number.

One module per format recognizes and reads it into a neutral value: `Machine` (one node), `Fabric`
(switches and hosts) or `Plan` (a whole network). `layout` turns a machine into a box, `cluster` and
`joined` boxes and a fabric into a plan, and `write` prints a plan.
"""

from colsynth.topology.importers.run import Imported, Request, import_topology
from colsynth.topology.importers.speeds import Wishes

__all__ = ["Imported", "Request", "Wishes", "import_topology"]
