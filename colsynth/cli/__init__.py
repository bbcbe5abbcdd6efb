"""The command line: one file per command; it prints and never decides."""
