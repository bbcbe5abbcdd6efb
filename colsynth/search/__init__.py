"""One search: which program is fastest, by the predictions of the simulator.

Passes declare their choices (`colsynth.runtimes.choice`). A `Plan` is one way to make a program, a
`Workshop` makes and measures plans, a `Searcher` decides which to try next, and `levels` says how
hard it tries. Commands differ in objective and budget alone.
"""
