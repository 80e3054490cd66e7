"""The HTML of the dashboard's pages."""

from html.parser import HTMLParser

from tests.debug.support.dashboard_samples import ONE, WHOLE
from tests.debug.support.samples import HOSTILE
from wharfinger.debug.dashboard.blocks import Cell, Facts, Folded, Items, Page, Picture, Preformatted, Section, Table
from wharfinger.debug.dashboard.overview_page import overview_page, queues_page
from wharfinger.debug.dashboard.package_page import missing_page, package_page
from wharfinger.debug.dashboard.page_html import Templates
from wharfinger.formats.terminal_text import is_safe

TEMPLATES = Templates()
BAD = f"<script>alert(1)</script>\"'&{HOSTILE}"


class Identifiers(HTMLParser):
    """A parser that collects the identifiers and the start tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [value for name, value in attrs if name == "id" and value]


def rendered(page: Page) -> str:
    return TEMPLATES.page(page, "/", "/changes?page=%2F", "")


def test_pages_are_complete_and_their_identifiers_are_unique() -> None:
    picture = Picture("<svg></svg>", "a drawing", "text")
    for page in (
        overview_page(WHOLE, "", picture),
        queues_page(WHOLE),
        package_page(ONE, picture),
        missing_page("a", "b"),
    ):
        html = rendered(page)
        found = Identifiers(html).found
        assert len(set(found)) == len(found)
        assert html.startswith("<!doctype html>")
        assert '<html lang="en">' in html
        assert html.count("<h1>") == html.count("<main") == 1


def test_a_section_is_rendered_alone_as_in_its_page() -> None:
    page = package_page(ONE, None)
    html = rendered(page)
    for section in page.sections:
        assert TEMPLATES.section(section) in html


def test_every_text_is_escaped() -> None:
    lines = Preformatted(BAD, (BAD,), BAD, "k")
    cell = Cell(BAD)
    blocks = (
        Table(BAD, (BAD,), ((cell, Cell(BAD, href=BAD)),), BAD),
        Facts(((BAD, cell),)),
        Items((cell,), BAD),
        lines,
        Picture("<svg/>", BAD, BAD),
        Folded("f", BAD, lines),
        Table(BAD, (), (), BAD),
    )
    page = Page(BAD, BAD, (Section("s", BAD, blocks),), BAD, BAD)
    for html in (TEMPLATES.page(page, "/", BAD, BAD), TEMPLATES.refused(BAD)):
        assert "<script>" not in html
        assert is_safe(html, allow="\n")


def test_pages_have_no_inline_scripts_and_styles() -> None:
    html = rendered(package_page(ONE, None))
    assert html.count("<script") == 1
    assert "<style" not in html
    assert " style=" not in html
    assert " onclick" not in html
