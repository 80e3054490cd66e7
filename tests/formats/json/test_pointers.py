import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.pointers import pointer_of, pointer_steps


@pytest.mark.parametrize(
    ("pointer", "steps"),
    [
        ("", ()),
        ("/", ("",)),
        ("/a/b", ("a", "b")),
        ("/a~1b/0", ("a/b", "0")),
        ("/~01", ("~1",)),
        ("/a//b", ("a", "", "b")),
    ],
)
def test_a_pointer_is_split_into_unescaped_steps(pointer: str, steps: tuple[str, ...]) -> None:
    assert pointer_steps(pointer) == steps
    assert pointer_of(steps) == pointer


@given(st.lists(st.text("ab~/01", max_size=4)))
def test_steps_round_trip(steps: list[str]) -> None:
    assert pointer_steps(pointer_of(steps)) == tuple(steps)
