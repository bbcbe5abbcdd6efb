"""The constants of the simulator from measurements of a machine.

`library_program` is what a collective library runs, `Trial` a log beside the program that
predicts it; `fit` finds the constants, `model_file` writes them.
"""

from colsynth.calibrate.calibrate import Calibration, calibrate
from colsynth.calibrate.fit import Estimate
from colsynth.calibrate.model_text import model_file
from colsynth.calibrate.programs import library_program
from colsynth.calibrate.solution import Constant
from colsynth.calibrate.trials import Trial

__all__ = [
    "Calibration",
    "Constant",
    "Estimate",
    "Trial",
    "calibrate",
    "library_program",
    "model_file",
]
