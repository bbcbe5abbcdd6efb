"""The orders of transfers that there are; `OrderTransfers` says what each is."""

from __future__ import annotations

CHAINS, COPY_CHAINS = "chains", "copy-chains"
LIST_SCHEDULE, ROUND_ROBIN = "list-schedule", "round-robin"
ORDERS = (CHAINS, COPY_CHAINS, LIST_SCHEDULE, ROUND_ROBIN)
