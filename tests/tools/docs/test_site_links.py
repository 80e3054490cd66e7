"""The replacement of links in pages for the site."""

from types import SimpleNamespace

import pytest

from tools.docs.site_links import REPOSITORY, ROOT, on_page_markdown, site_target

DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("metrics.md#labels", "metrics.md#labels"),
        ("#here", "#here"),
        ("https://example.com/a.md", "https://example.com/a.md"),
        ("../systemd/wharfinger.service", REPOSITORY + "systemd/wharfinger.service"),
        ("../README.md#two-commands", REPOSITORY + "README.md#two-commands"),
        ("decisions", REPOSITORY + "docs/decisions"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(target: str, found: str) -> None:
    assert site_target(target, DOCS) == found


def test_a_link_without_a_target_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        site_target("../nowhere.md", DOCS)


def test_all_links_of_a_page_are_rewritten() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="decisions/0001.md"))
    assert on_page_markdown("[a](../metrics.md) [b](../../Makefile)", page) == (
        f"[a](../metrics.md) [b]({REPOSITORY}Makefile)"
    )
