from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth.pipeline.options import options_of
from colsynth.units import MOST_BYTES
from tests.pipeline.toys import AddWord

OPTIONS = {option.name: option for option in options_of(AddWord)}


def test_options_are_the_fields_in_order_in_kebab_case():
    assert list(OPTIONS) == ["word", "times", "upper", "at-most", "style"]
    assert [option.kind for option in OPTIONS.values()] == [
        "str",
        "int",
        "bool",
        "none | int",
        "plain | loud | int",
    ]
    assert OPTIONS["at-most"].default is None


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("times", "-3", -3),
        ("times", str(MOST_BYTES), MOST_BYTES),
        ("upper", "true", True),
        ("at-most", "none", None),
        ("at-most", "7", 7),
        ("style", "loud", "loud"),
        ("style", "12", 12),
        ("word", "none", "none"),
    ],
)
def test_values_read_and_print(option, text, value):
    assert OPTIONS[option].from_text(text) == value
    assert OPTIONS[option].to_text(value) == text


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("times", "many"),
        ("upper", "yes"),
        ("at-most", "1.5"),
        ("style", "quiet"),
        ("times", ""),
        ("times", str(MOST_BYTES + 1)),
    ],
)
def test_values_of_the_wrong_type_are_refused(option, text):
    with pytest.raises(ValueError, match="expected"):
        OPTIONS[option].from_text(text)


@dataclass(frozen=True)
class Loose:
    value: str | int | bool | None = None
    mode: Literal["none", "4"] | int | None = None


VALUES = st.one_of(
    st.text(max_size=6), st.integers(-MOST_BYTES, MOST_BYTES), st.booleans(), st.none()
)


@given(VALUES | st.sampled_from(["true", "none", "17", "-1"]))
def test_every_value_of_a_union_survives_text(value):
    option = options_of(Loose)[0]
    text = option.to_text(value)
    quoted = text.startswith('"')
    import json

    back = option.from_text(json.loads(text) if quoted else text, quoted=quoted)
    assert back == value
    assert type(back) is type(value)


def test_a_field_that_text_cannot_spell_is_a_mistake_of_the_pass():
    @dataclass(frozen=True)
    class Odd:
        ratio: float = 0.5

    @dataclass(frozen=True)
    class Needy:
        count: int = field()

    with pytest.raises(TypeError, match="float"):
        options_of(Odd)
    with pytest.raises(TypeError, match="no default"):
        options_of(Needy)
