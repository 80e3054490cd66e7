"""Chains of conversions between versions, checked with the tables of the hook contract (spec hook-protocol §6.4)."""

import pytest

from wharfinger.hooks.webhooks.chains import MAX_LENGTH, Pair, find_chain, full_versions, versions_match

LETTERS = [("alpha", "beta"), ("beta", "gamma"), ("gamma", "delta")]
FULL = [
    ("group.io/alpha", "beta"),
    ("unstable.example.com/beta", "gamma"),
    ("stable.example.com/gamma", "next.io/delta"),
]


@pytest.mark.parametrize(
    ("one", "other", "match"),
    [
        ("v1", "v1", True),
        ("v1", "a.io/v1", True),
        ("a.io/v1", "v1", True),
        ("a.io/v1", "a.io/v1", True),
        ("a.io/v1", "b.io/v1", False),
        ("v1", "v2", False),
    ],
)
def test_short_and_full_versions_match(one: str, other: str, match: bool) -> None:
    assert versions_match(one, other) is match


@pytest.mark.parametrize(
    ("pairs", "source", "target", "chain"),
    [
        (LETTERS, "alpha", "delta", tuple(LETTERS)),
        (LETTERS, "alpha", "gamma", tuple(LETTERS[:2])),
        (LETTERS, "x.io/alpha", "x.io/beta", tuple(LETTERS[:1])),
        (LETTERS, "alpha", "alpha", ()),
        (LETTERS, "delta", "alpha", None),
        (FULL, "alpha", "delta", tuple(FULL)),
        ([("a", "b"), ("b", "a"), ("b", "c"), ("a", "c")], "a", "c", (("a", "c"),)),
        ([("a", "b"), ("b", "a")], "a", "c", None),
        ([("alpha.example.com/v1beta1", "alpha.example.io/v1beta1")], "alpha.example.com/v1beta1",
         "alpha.example.io/v1beta1", (("alpha.example.com/v1beta1", "alpha.example.io/v1beta1"),)),
    ],
)  # fmt: skip
def test_shortest_conversion_chain_is_found(
    pairs: list[Pair], source: str, target: str, chain: tuple[Pair, ...] | None
) -> None:
    assert find_chain(pairs, source, target) == chain


def test_length_of_a_conversion_chain_is_limited() -> None:
    pairs = [(f"v{number}", f"v{number + 1}") for number in range(MAX_LENGTH + 1)]
    assert find_chain(pairs, "v0", f"v{MAX_LENGTH}") == tuple(pairs[:MAX_LENGTH])
    assert find_chain(pairs, "v0", f"v{MAX_LENGTH + 1}") is None


def test_short_versions_are_completed_with_the_target_group() -> None:
    assert full_versions([("v1", "v2"), ("v2", "b.io/v3")], "a.io/v3") == ("a.io/v2", "b.io/v3")
