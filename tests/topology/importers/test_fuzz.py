"""Whatever a file holds, it becomes a topology or one diagnostic; never anything else.

COLSYNTH_FUZZ_CASES says how many files are mutated, COLSYNTH_FUZZ_SEED which ones.
"""

import os
import random
import re
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from colsynth.cli.codes import explanations
from colsynth.errors import InputError
from colsynth.topology import load
from colsynth.topology.importers import Request, Wishes, import_topology
from tests.each import each
from tests.fuzz.mutations import NUMBERS, SCRAPS, mutated_bytes, mutated_text, pick
from tests.watchdog import TooLong, at_most

SEED = os.environ.get("COLSYNTH_FUZZ_SEED", "1")
CASES = int(os.environ.get("COLSYNTH_FUZZ_CASES", "600"))
SECONDS = 20
FOLDERS = (Path(__file__).parents[2] / "corpus" / "machines", Path("/work/shared/samples/topology"))
WORDS = (
    *("NV4", "NV99999", "SYS", "GPU0", "NIC0", "XGMI", "N/A", "50000-0", "0-50000", "[0-9]"),
    *('count="0"', 'busid=""', "</pci>", "<gpu/>", "GT/s", "rank", "SwitchName=a Switches=a"),
    *("4xNDR", "S-00", "tbd", "1e308", '"links"', "-1", "host_hash", "class", "&lt;"),
)

CODES = set(explanations())
OF_GRAPHS = ("CS116", "CS125", "CS140")
"""What may be wrong with a text that was written: no way between two GPUs, too many links, or
GPUs of which nothing tells the boxes."""


def files():
    """Return the files that mutations begin with: small ones come first."""
    found = [path for folder in FOLDERS for path in folder.rglob("*") if path.is_file()]
    return [path for path in sorted(found) if path.suffix != ".md"]


def mutated(rng, path):
    """Return the bytes of a file with a small change, which keeps its syntax, or with others."""
    data = path.read_bytes()
    if rng.random() < 0.1:
        return mutated_bytes(rng, data)
    text = data.decode("utf-8", "surrogateescape")
    if rng.random() < 0.7:
        for _ in range(pick(rng, (1, 1, 2, 5))):
            text = pick(rng, CHANGES)(rng, text)
    else:
        text = mutated_text(rng, text, WORDS if rng.random() < 0.5 else SCRAPS + NUMBERS)
    return text.encode("utf-8", "surrogatepass")


def number(rng, text):
    """Replace a number."""
    found = list(re.finditer(r"[0-9]+", text))
    if not found:
        return text
    one = pick(rng, found)
    return text[: one.start()] + pick(rng, SMALL) + text[one.end() :]


def word(rng, text):
    """Replace a word by another one of the file."""
    found = list(re.finditer(r"[A-Za-z0-9_.:-]+", text))
    if not found:
        return text
    one, other = pick(rng, found), pick(rng, found)
    return text[: one.start()] + other[0] + text[one.end() :]


def line(rng, text):
    """Take out a line, repeat it, or put it elsewhere."""
    lines = text.split("\n")
    taken = lines.pop(rng.randrange(len(lines)))
    for _ in range(pick(rng, (0, 1, 2))):
        lines.insert(rng.randint(0, len(lines)), taken)
    return "\n".join(lines)


CHANGES = (number, number, word, line)
SMALL = ("0", "1", "2", "3", "4", "5", "8", "15", "16", "18", "64", "200000", "99999999999", "-1")
FABRICS = ("conf", "ibnet", "w23", "w24", "w25")


def requests(rng, name):
    fabric = any(part in name for part in FABRICS)
    other = name.endswith((".csv", ".yml", ".yaml", ".json")) and "amd" not in name
    if fabric or other:
        box = pick(rng, ("mi250", "ndv2", "dgx-h100")) if fabric else None
        return Request(boxes=pick(rng, (None, None, 2)), box=box, strict=rng.random() < 0.05)
    return Request(
        boxes=pick(rng, (None, None, None, 1, 2)),
        wishes=Wishes(
            pick(rng, ("spec", "library", "measured")),
            pick(rng, ("", "", "sm90", "gfx90a")),
            pick(rng, (None, Fraction(50 * 10**9))),
        ),
        strict=rng.random() < 0.05,
    )


def fault(case, paths, done):
    """Return what is wrong with the answer to a case; None for nothing."""
    rng = random.Random(f"{SEED} {case}")
    path = pick(rng, paths)
    data, request = mutated(rng, path), requests(rng, path.name)
    try:
        with at_most(SECONDS):
            found = import_topology([(path.name, data)], request)
            done.append(case)
            if load("again", data=found.text.encode()) != found.topology:
                return f"case {case}, {path.name}: its text means something else"
    except InputError as error:
        told = error.diagnostic
        ours = told.span is None and "as far as it was understood" in str(error)
        if told.code not in (OF_GRAPHS if ours else CODES):
            return f"case {case}, {path.name}: {error}"
    except (Exception, TooLong) as error:  # noqa: BLE001 - whatever it is, it is a failure
        return f"case {case}, {path.name}: {type(error).__name__} {error}"
    return None


def test_every_mutated_file_becomes_a_topology_or_one_diagnostic():
    paths = files()
    assert len(paths) > 60
    done: list[int] = []
    wrong = [found for case in range(CASES) if (found := fault(case, paths, done))]
    assert not wrong, "\n".join(wrong[:20])
    assert len(done) > CASES / 5  # so that what comes after reading is tried too


@each("path", [path for path in files() if path.is_relative_to(FOLDERS[0])])
def test_a_number_of_any_length_is_read_or_refused(path):
    """Python converts no text of more than 4300 digits."""
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    numbers = list(re.finditer("[0-9]+", text))
    request = requests(random.Random(path.name), path.name)
    for one in numbers[:: 1 + len(numbers) // 12]:
        longer = text[: one.start()] + "9" * 5000 + text[one.end() :]
        with suppress(InputError):
            import_topology([(path.name, longer.encode("utf-8", "surrogatepass"))], request)
