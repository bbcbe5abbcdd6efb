"""Graphs of direct-connect fabrics, as texts: ``torus:4x4``, ``line^2(circulant:16,3,4)``.

`grammar` reads a text into a term, `build` makes its graph, `atoms`, `cayley` and `catalogue` hold
the generators, `operators` the expansions. `facts` says what a graph is: degree, diameter, girth.
"""
