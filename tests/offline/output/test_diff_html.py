"""Differences as an HTML page."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.output.comparison import Comparison, ObjectChange
from wharfinger.offline.output.diff_html import diff_html
from wharfinger.runtime.fixpoint.model import Id

WEB = Id("ConfigMap", "apps", "web")


class Page(HTMLParser):
    """A parser that records the tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(comparison: Comparison) -> Page:
    page = Page()
    page.feed(diff_html(comparison))
    page.close()
    return page


def change(value: str) -> Comparison:
    before: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    return Comparison((ObjectChange(WEB, before, {**before, "data": {"a": value}}),), (Id("HelmRelease.x", "a", "b"),))


def test_a_page_contains_the_summary_and_the_changed_lines() -> None:
    page = page_of(change("c"))
    assert "0 added, 1 changed, 0 deleted" in page.text
    assert "ConfigMap apps/web: changed" in page.text
    assert "+  a: c" in page.text
    assert "HelmRelease a/b" in page.text
    assert '<span class="deleted">-  a: b</span>' in diff_html(change("c"))


def test_an_empty_comparison_reports_no_differences() -> None:
    assert "No differences." in page_of(Comparison((), ())).text


@given(st.text(max_size=60))
def test_values_are_escaped_in_the_page(value: str) -> None:
    expected = page_of(change("plain")).tags
    found = page_of(change("plain" + value)).tags
    assert set(found) <= set(expected)
    assert "script" not in found


def test_names_of_objects_are_escaped_in_the_page() -> None:
    hostile = Comparison((ObjectChange(Id("Kind", "a", "<script>x</script>"), None, {"kind": "</pre><img>"}),), ())
    page = page_of(hostile)
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "<script>x</script>" in page.text
