import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth.errors import InputError
from colsynth.pipeline.spec import OptionSpec, PassSpec, parse, to_text

WORDS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
BARE = st.builds(OptionSpec, WORDS, st.from_regex(r"[A-Za-z0-9_.:/+-]{1,9}", fullmatch=True))
QUOTED = st.builds(OptionSpec, WORDS, st.text(max_size=9), st.just(True))
PIPELINES = st.lists(
    st.builds(PassSpec, WORDS, st.lists(BARE | QUOTED, max_size=3).map(tuple)), min_size=1
).map(tuple)


@given(PIPELINES)
def test_text_of_any_pipeline_reads_back_to_the_same_text(pipeline):
    text = to_text(pipeline)
    assert to_text(parse(text)) == text


def test_text_prints_back_to_itself():
    text = "pack-trees{trees=4},lower-forest,assign-threadblocks{max-channels=16,style=a.b/c}"
    assert to_text(parse(text)) == text


def test_spaces_and_empty_braces_are_allowed():
    assert to_text(parse(" a { x = 1 , y = 2 } , b{} ")) == "a{x=1,y=2},b"


def test_columns_point_at_the_words():
    first, second = parse("one{x=1}, two{y=2}")
    assert (first.column, second.column) == (1, 11)
    assert second.options[0].column == 15


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "the name of a pass, found the end of the text"),
        ("a,", 3, "the name of a pass, found the end of the text"),
        ("a b", 3, "',' or the end, found 'b'"),
        ("a{", 3, "the name of an option"),
        ("a{x}", 4, "'=', found '}'"),
        ("a{x=}", 5, "a value, found '}'"),
        ("a{x=1", 6, "',' or '}'"),
        ("a{x=1 ;}", 7, "',' or '}', found ';'"),
        ('a{x="open}', 5, "a value"),
        ('a{x="\\q"}', 5, "a JSON string"),
    ],
)
def test_a_fault_names_its_column_and_what_was_expected(text, column, expected):
    with pytest.raises(InputError) as caught:
        parse(text)
    found = caught.value.diagnostic
    assert found.code == "CS201"
    assert found.span.column == column
    assert expected in found.phrase
