"""The messages between the engine and its driver."""

import pytest

from wharfinger.runtime.fixpoint.model import Blocked, Dispatch, Emission, Finished, Id, Level, Terminal


def test_ids_are_ordered_by_kind_then_namespace_then_name() -> None:
    ids = [Id("B", "a", "a"), Id("A", "b", "a"), Id("A", "a", "b"), Id("A", "a", "a")]
    assert sorted(ids) == ids[::-1]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Id("Package", "shop", "web"), "Package/shop/web"),
        (Id("Tier", "", "000999"), "Tier/000999"),
        (Id("", "", ""), ""),
    ],
)
def test_the_text_of_an_id_omits_empty_parts(one: Id, text: str) -> None:
    assert str(one) == text


def test_levels_are_ordered() -> None:
    assert Level.NONE < Level.CASCADE < Level.FORCE
    assert list(Level) == [0, 1, 2]


def test_messages_have_their_defaults() -> None:
    one = Id("Node", "", "a")
    assert Emission(one, "1").runnable
    assert Terminal("ready") == Terminal("ready", (), ())
    assert not Finished(one, 1, Blocked((one,))).sweep
    assert Dispatch(one, 1, Level.NONE).loop == ()
