"""From a schedule to threadblocks: small passes, each of which only adds decisions.

lower-forest (which chunk moves on which edge) -> coalesce-chunks (what travels together)
-> order-transfers (one global order) -> place-slots (where chunks live) ->
assign-threadblocks (who moves them) -> spell-dependencies (one wait per step, limits).
"""
