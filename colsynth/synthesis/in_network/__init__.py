"""Forests whose trees branch at switches that multicast and join at those that reduce.

A switch that multicasts (NVLink SHARP, InfiniBand SHARP) sends what it receives once on
several links; one that reduces adds up what it receives on several. Trees outwards may
branch at the first and trees inwards join at the second, as they do at GPUs. So trees are
packed over GPUs and such switches alike; then the switches disappear into the routes
between GPUs, and a link counts once for all edges of a tree that part behind it.

Cuts bound an allgather or reduce-scatter with such switches as they do without: what
enters a GPU enters it once. There the switches only help where forwarding loses what cuts
allow. An allreduce gains more, since its halves share the links (`both_ways`).

No runtime file can say any of this: the forests show what the switches are worth.
"""
