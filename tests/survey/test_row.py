import json
from fractions import Fraction

import pytest

from colsynth.survey import Bottleneck, Row

CUT = Bottleneck("into", (("gpu0",),), ("a -> gpu0", "b -> gpu0"), Fraction(10**11, 3))
ROWS = [
    Row("a-b", 8, Fraction(10**9, 7), Fraction(10**9, 9), 3, CUT, None, (("x/y.xml", "ab"),)),
    Row("gpu0", 7, Fraction(0), refusal="CS302: cut off"),
    Row("", 8, Fraction(10**9)),
]


@pytest.mark.parametrize("row", ROWS)
def test_rows_come_back_from_json_exactly(row):
    assert Row.of_entry(json.loads(json.dumps(row.entry()))) == row


@pytest.mark.parametrize("entry", [None, [], {}, {"failure": "x"}, 5])
def test_what_is_no_row_is_refused_as_the_folder_expects(entry):
    with pytest.raises((KeyError, TypeError, ValueError)):
        Row.of_entry(entry)
