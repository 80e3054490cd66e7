"""Lists in messages. A short list is complete, and a long one ends with the number of omitted items."""

import pytest

from wharfinger.formats.listing import counted, listed, with_article


@pytest.mark.parametrize(
    ("items", "separator", "text"),
    [
        ([], ", ", ""),
        (["a"], ", ", "a"),
        (["a", "b"], ", ", "a, b"),
        (["a", "b", "c"], ", ", "a, b and 1 more"),
        (range(12), "; ", "0; 1; and 10 more"),
    ],
)
def test_a_listing_names_at_most_two_items(items: list[str], separator: str, text: str) -> None:
    assert listed(items, 2, separator) == text


@pytest.mark.parametrize(
    ("number", "none", "text"), [(0, "0", "0 hooks"), (0, "no", "no hooks"), (1, "no", "1 hook"), (2, "0", "2 hooks")]
)
def test_a_count_has_a_singular_or_plural_noun(number: int, none: str, text: str) -> None:
    assert counted(number, "hook", none=none) == text


@pytest.mark.parametrize("text", ["an Application", "a Module", "an object", "a hook"])
def test_the_article_follows_from_the_first_letter(text: str) -> None:
    assert with_article(text.split()[1]) == text
