"""Which cabling for so many GPUs with so many ports? Known constructions, and a seeded search.

`finder` collects graphs, `cayley` searches among Cayley digraphs, `figures` judges a graph exactly,
`ranking` weighs message sizes, `panels` and `boxes` turn the winner into cables.
"""
