"""Contents that packages share: the most recently used contents are cached."""

from wharfinger.runtime.package.contents import MOST, Contents, Kept


def test_the_most_recently_used_contents_are_cached() -> None:
    kept = Kept[str]()
    assert kept.get("a") is None
    for number in range(MOST):
        kept.keep(number, f"content {number}")
    assert kept.get(0) == "content 0"
    kept.keep(MOST, "one more")
    assert (kept.get(0), kept.get(1), kept.get(MOST)) == ("content 0", None, "one more")


def test_each_kind_of_content_is_cached_separately() -> None:
    contents = Contents()
    contents.webhook_mentions.keep("a", False)
    assert (contents.definitions.get("a"), contents.chart_uses.get("a")) == (None, None)
    assert contents.webhook_mentions.get("a") is False
    assert contents.definitions is not Contents().definitions
