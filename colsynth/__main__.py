"""Runs the command line: ``python -m colsynth``, and the ``colsynth`` program."""

import gc
import sys

_COLLECTED = 10_000_000
"""Values made, less those freed, before Python looks for reference cycles. Compilations make hardly
any cycles; its usual 700 cost a tenth of a short command, 3,000,000 a twentieth of a long one."""


def main() -> None:
    """Run the command line of this process; Ctrl-C ends it from the first import on."""
    gc.set_threshold(_COLLECTED)
    try:
        from colsynth.cli.interrupts import watch

        watch()
        from colsynth.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    finally:
        gc.freeze()  # or Python looks for cycles in all of numba at exit, for 0.15 s


if __name__ == "__main__":
    main()
