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
    with pytest.raises(ValueError):  # noqa: PT011 - the message is for nobody
        Row.of_entry(entry)


DAMAGE = {
    "failure": [None, 5],
    "ranks": ["8", 1.5],
    "bound": ["1/0", "1e999999999", "9" * 5000, "-1", 7, None],
    "algbw": ["nan", "-1/2", 0.5],
    "bottleneck": [[], {"way": "into"}, {**CUT.entry(), "bandwidth": "1/0"}],
    "refusal": [1],
    "files": [None, [["a", "b"]], [{"path": 1, "sha256": "x"}]],
}


@pytest.mark.parametrize(("key", "value"), [(k, v) for k, some in DAMAGE.items() for v in some])
def test_a_row_with_a_damaged_value_is_no_row(key, value):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is for nobody
        Row.of_entry({**ROWS[0].entry(), key: value})
