"""Runs the command line: ``python -m colsynth``, and the ``colsynth`` program."""

import sys


def main() -> None:
    """Run the command line of this process; Ctrl-C ends it from the first import on."""
    try:
        from colsynth.cli.interrupts import watch

        watch()
        from colsynth.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
