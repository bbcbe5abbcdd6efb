"""Execution plans of MSCCL++: their form, a reader, a writer, and the way back to steps."""
