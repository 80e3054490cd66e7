"""The contents that packages share are the ones that were used last."""

from wharfinger.runtime.package.contents import MOST, Contents, Kept


def test_what_was_used_last_is_kept() -> None:
    kept = Kept[str]()
    assert kept.get("a") is None
    for number in range(MOST):
        kept.keep(number, f"content {number}")
    assert kept.get(0) == "content 0"
    kept.keep(MOST, "one more")
    assert (kept.get(0), kept.get(1), kept.get(MOST)) == ("content 0", None, "one more")


def test_each_kind_is_kept_on_its_own() -> None:
    contents = Contents()
    contents.webhook_mentions.keep("a", False)
    assert (contents.definitions.get("a"), contents.chart_uses.get("a")) == (None, None)
    assert contents.webhook_mentions.get("a") is False
    assert contents.definitions is not Contents().definitions
