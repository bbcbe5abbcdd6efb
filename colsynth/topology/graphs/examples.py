"""One text of each form, for lists, completion and errors; loads nothing."""

from __future__ import annotations

GENERATORS = {
    "ring": "ring:8",
    "mesh": "mesh:4x4",
    "torus": "torus:4x4x4",
    "hypercube": "hypercube:6",
    "clique": "clique:8",
    "uniring": "uniring:8",
    "circulant": "circulant:16,3,4",
    "dicirculant": "dicirculant:8,1,3",
    "twisted": "twisted:4x8",
    "hamming": "hamming:2,4",
    "bipartite": "bipartite:4",
    "kautz": "kautz:2,3",
    "debruijn": "debruijn:2,4",
    "genkautz": "genkautz:4,100",
    "gendebruijn": "gendebruijn:4,100",
    "kneser": "kneser:7,3",
    "odd": "odd:4",
    "lcf": "lcf:7,5,-5",
    "distance-regular": "distance-regular:octahedron",
    "cayley": "cayley:8:2:3:5.1,3.0",
}
"""Generators, by name."""

EXPANSIONS = {
    "line": "line^2(kautz:2,2)",
    "degree": "degree:2(ring:8)",
    "power": "power:2(ring:8)",
    "product": "product(ring:4,kautz:2,3)",
    "duplex": "duplex(kautz:2,3)",
    "transpose": "transpose(genkautz:4,36)",
    "joined": "joined(debruijn:2,3)",
}
"""Expansions of other graphs, by name."""

EXAMPLES = (*GENERATORS.values(), *EXPANSIONS.values())
