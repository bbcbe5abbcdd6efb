"""The search for the fastest program, by the predictions of the simulator.

Passes declare their choices (`colsynth.runtimes.choice`). A `Plan` is one way to make a program. A
`Workshop` makes and simulates plans. A `Searcher` decides which plans to try next, and `levels`
sets its budget. All commands use this search; they differ only in objective and budget.
"""
