"""Checks of files, programs and forests, independent of what made them.

`verify_bytes` reads a file as the runtime would and applies the rules of the runtime
contract; `check_forest` checks trees and bound, `check_timed` replays a timed schedule.
Nothing here is shared with the rooms that synthesize or lower schedules.
"""

from colsynth.verify.check import verify_bytes, verify_program, verify_reading
from colsynth.verify.forest import check_forest
from colsynth.verify.timed import check_timed

__all__ = ["check_forest", "check_timed", "verify_bytes", "verify_program", "verify_reading"]
