"""Process groups: each is solved as a machine of its own, then told in ranks of the whole.

Without transit the other GPUs are not there. With transit they are places where data passes:
`topology/communicator.py` makes switches of them that copy and add up. A switch that only
forwards, as much as it receives, loses nothing that cuts allow (edge splitting: Bang-Jensen,
Frank, Jackson 1995), so an allgather, reduce-scatter, broadcast or reduce reaches its cut by
relays that copy nothing wherever links come in equal pairs. Elsewhere trees may branch at
relays too, and an allreduce gains by relays that add up: that is what `in_network` packs.

Several groups at the same time share the links. No theorem gives their optimum (each has data
of its own, so a cut need not be reached): the bound adds up what groups must send over the same
cut, the forest is that of each group at the pace that all together allow, and the gap is known.
"""
