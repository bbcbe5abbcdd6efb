"""The orders of transfers that there are; `OrderTransfers` says what each is."""

from __future__ import annotations

CHAINS, COPIES, PACED, WAVES = "chains", "copies", "paced", "waves"
ORDERS = (CHAINS, COPIES, PACED, WAVES)
