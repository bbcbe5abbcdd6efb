import subprocess
import sys

SOLVES = """
from colsynth.bounds.solver import silent
solver = silent()
solver.addVar(2.0, 5.0)
solver.changeColCost(0, 1.0)
solver.run()
print(solver.getInfo().objective_function_value)
"""


def test_nothing_is_printed_beside_the_answer():
    done = subprocess.run(
        [sys.executable, "-c", SOLVES], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("2.0\n", "")
