"""The page in a real browser: live updates, the use by keyboard and by screen reader, and pictures of light, dark and narrow
windows."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import pytest
import trio

from tests.debug.support.browser import Browser, needs_browser, open_browser
from tests.debug.support.canned import CannedInspector
from tests.debug.support.dashboard_samples import inspector, opened
from tests.debug.support.golden import REWRITES
from tests.debug.support.samples import HOSTILE
from tests.debug.support.top_samples import PACKAGES
from tests.programs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured, needs_browser]

CONTRAST: Final = """
(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const paper = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = parse(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.querySelectorAll("body *:not(svg *)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own) continue;
    const [one, other] = [light(parse(getComputedStyle(element).color)), light(paper(element))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) bad.push(`${element.outerHTML.slice(0, 80)}: ${ratio.toFixed(1)}`);
  }
  return bad;
})()
"""
"""A script that returns the texts whose contrast with their background is below 4.5."""
DOUBLED: Final = """
(() => {
  const found = [...document.querySelectorAll("[id]")].map((each) => each.id);
  return found.length - new Set(found).size;
})()
"""
"""A script that returns the number of repeated identifiers."""
FOCUSED: Final = """
(() => {
  const at = document.activeElement;
  return at.getAttribute("aria-label") || at.textContent.trim() || at.id;
})()
"""


async def shown(folder: Path, answers: CannedInspector, act: Callable[[Browser, str], None]) -> None:
    """Open the one-time address of a daemon's page in a browser, and call ``act`` with the browser and the address."""

    def do(address: str) -> None:
        profile = folder / "profile"
        profile.mkdir()
        with open_browser(profile) as browser:
            browser.look()
            browser.open(address)
            act(browser, address.partition("?")[0])
            assert browser.messages == []

    async with opened(folder, answers) as (address, _client):
        await trio.to_thread.run_sync(do, address)


async def test_the_page_is_updated_and_retains_focus_and_open_details(tmp_path: Path) -> None:
    answers = inspector()

    def act(browser: Browser, base: str) -> None:
        assert browser.evaluate("location.href") == base
        assert browser.evaluate("document.cookie") == ""
        assert "Failed" in str(browser.evaluate("document.getElementById('packages').innerText"))
        browser.evaluate("document.querySelector('#graph details').open = true")
        browser.evaluate("""document.querySelector('#packages a[href="package?name=prod.shop"]').focus()""")
        answers.contents = (PACKAGES[0], replace(PACKAGES[2], state="Ready", message="well again"))
        browser.wait("document.getElementById('packages').innerText.includes('well again')")
        browser.wait("document.getElementById('announcement').textContent === '2 packages: 2 Ready'")
        browser.wait("!document.getElementById('graph').innerText.includes('prod.busy')")
        assert browser.evaluate("document.querySelector('#graph details').open") is True
        assert browser.evaluate("document.activeElement.getAttribute('href')") == "package?name=prod.shop"
        browser.evaluate("document.getElementById('pause').click()")
        answers.contents = PACKAGES
        browser.evaluate("new Promise((done) => setTimeout(done, 2500))")
        assert "well again" in str(browser.evaluate("document.getElementById('packages').innerText"))
        browser.evaluate("document.getElementById('pause').click()")
        browser.wait("document.getElementById('packages').innerText.includes('prod.busy')")

    await shown(tmp_path, answers, act)


async def test_the_keyboard_reaches_every_control(tmp_path: Path) -> None:
    def act(browser: Browser, base: str) -> None:
        reached: list[str] = []
        for _ in range(60):
            browser.press("Tab")
            if browser.evaluate("document.activeElement === document.body"):  # the focus has passed the end of the page
                break
            reached.append(str(browser.evaluate(FOCUSED)))
            outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline not in ("none", ""), reached[-1]
        assert reached[:4] == ["Skip to the content", "Packages", "Queues", "Pause updates"]
        for words in ("Find", "Dependencies of all packages", "The same as text", "All packages", "prod.shop"):
            assert words in reached, reached
        browser.evaluate("""document.querySelector('#packages a[href="package?name=prod.shop"]').focus()""")
        browser.press("Enter")
        browser.wait("location.pathname.endsWith('/package') && document.readyState === 'complete'")
        browser.evaluate("document.querySelector('#hook-0 summary').focus()")
        browser.press("Enter")
        browser.wait("document.getElementById('hook-0').open")
        browser.press("Tab", shift=True)
        assert browser.evaluate("document.activeElement.closest('section')?.id") == "hooks"
        browser.evaluate("document.querySelector('.skip').focus()")
        browser.press("Enter")
        browser.wait("document.activeElement.id === 'main'")

    await shown(tmp_path, inspector(), act)


async def test_every_control_has_a_name_for_screen_readers(tmp_path: Path) -> None:
    def act(browser: Browser, base: str) -> None:
        for address, title, regions in (
            (base, "Packages", {"Daemon", "Dependencies", "Packages"}),
            (f"{base}queues", "Queues", {"Tasks", "Limits"}),
            (f"{base}package?name=prod.shop", "prod.shop", {"State", "Resources", "Drift", "Hooks", "History", "Log"}),
        ):
            browser.open(address)
            found = browser.accessible()
            roles = [role for role, _ in found]
            for landmark in ("banner", "navigation", "main", "contentinfo"):
                assert roles.count(landmark) == 1, (landmark, roles.count(landmark))
            assert next(name for role, name in found if role == "heading") == title
            assert regions <= {name for role, name in found if role == "region"}
            named = ("link", "button", "region", "navigation", "searchbox", "DisclosureTriangle", "table")
            assert [each for each in found if each[0] in named and not each[1].strip()] == []
            assert browser.evaluate("document.documentElement.lang") == "en"
            levels = browser.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((each) => each.tagName)")
            assert cast("list[str]", levels)[0] == "H1"
            assert set(cast("list[str]", levels)[1:]) == {"H2"}
            unnamed = "document.querySelectorAll('[role=group]:not([aria-label]):not([aria-labelledby])').length"
            assert browser.evaluate(unnamed) == 0
            assert browser.evaluate(DOUBLED) == 0

    await shown(tmp_path, inspector(), act)


async def test_pages_are_readable_in_light_dark_and_narrow_windows(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()

    def act(browser: Browser, base: str) -> None:
        for name, path in (("packages", ""), ("package", "package?name=prod.shop"), ("queues", "queues")):
            for look, width, dark in (("light", 1280, False), ("dark", 1280, True), ("narrow", 360, False)):
                browser.look(width=width, dark=dark)
                browser.open(base + path)
                browser.screenshot(pictures / f"{name}-{look}.png")
                assert browser.evaluate(CONTRAST) == [], (name, look)
                wide = browser.evaluate("document.documentElement.scrollWidth > innerWidth")
                assert wide is False, f"{name}, {look}: the whole page scrolls sideways"
        paper = "getComputedStyle(document.body).backgroundColor"
        browser.look(dark=True)
        in_the_dark = browser.evaluate(paper)
        browser.look()
        assert browser.evaluate(paper) != in_the_dark

    await shown(tmp_path, inspector(), act)
    assert len(list(pictures.glob("*.png"))) == 9
    assert all(each.stat().st_size > 5_000 for each in pictures.iterdir())
    if REWRITES:  # browsers draw texts differently, so the picture in the documents is not compared
        shutil.copy(pictures / "packages-light.png", ROOT / "docs" / "images" / "dashboard-light.png")


async def test_hostile_texts_are_not_executed_by_a_browser(tmp_path: Path) -> None:
    bad = f"<img src=x onerror='document.title=1'><script>document.title=2</script>{HOSTILE}"
    answers = CannedInspector(contents=(replace(PACKAGES[2], message=bad, state=bad, drift=(bad,), warnings=(bad,)),))

    def act(browser: Browser, base: str) -> None:
        for path in ("", "package?name=prod.shop", "queues"):
            browser.open(base + path)
            browser.wait("document.getElementById('pause') !== null")
            answers.contents = (replace(answers.contents[0], message=f"{path} {bad}"),)
            if path != "queues":
                browser.wait(f"document.body.innerText.includes({f'{path} <img'!r})")
            assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
            assert "Wharfinger" in str(browser.evaluate("document.title"))

    await shown(tmp_path, answers, act)


async def test_the_end_of_the_daemon_is_shown_on_the_page(tmp_path: Path) -> None:
    answers = inspector()

    def act(browser: Browser, base: str) -> None:
        (tmp_path / "s").unlink()
        browser.wait("document.getElementById('problem').innerText.includes('no daemon answers')")
        assert browser.evaluate("document.getElementById('packages').innerText.includes('prod.shop')") is True

    await shown(tmp_path, answers, act)
