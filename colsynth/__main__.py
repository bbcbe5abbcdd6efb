"""Runs the command line: ``python -m colsynth``."""

from colsynth.cli.main import main

if __name__ == "__main__":
    main()
