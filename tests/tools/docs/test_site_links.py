"""Links of pages, as the site has them."""

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
def test_targets(target: str, found: str) -> None:
    assert site_target(target, DOCS) == found


def test_a_link_that_leads_nowhere() -> None:
    with pytest.raises(FileNotFoundError):
        site_target("../nowhere.md", DOCS)


def test_a_page() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="decisions/0001.md"))
    assert on_page_markdown("[a](../metrics.md) [b](../../Makefile)", page) == (
        f"[a](../metrics.md) [b]({REPOSITORY}Makefile)"
    )
