"""The HTML of pages, rendered with the templates in the folder ``templates``.

Control characters in a text are replaced, and then the text is escaped. The drawings are the only exception, because
`graph_to_svg` has escaped them already.
"""

from pathlib import Path
from typing import Final

import jinja2
from markupsafe import Markup

from wharfinger.debug.dashboard.blocks import Page, Section
from wharfinger.formats.terminal_text import printable

FOLDER: Final = Path(__file__).parent / "templates"


class Templates:
    """The loaded templates."""

    def __init__(self) -> None:
        loader = jinja2.FileSystemLoader(FOLDER)
        environment = jinja2.Environment(
            loader=loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_final,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["drawn"] = _drawn
        self._page = environment.get_template("page.html")
        self._refused = environment.get_template("refused.html")
        self._macros = environment.get_template("macros.html")

    def page(self, page: Page, here: str, changes: str, problem: str) -> str:
        """Return a page. ``here`` is its path, ``changes`` the address of its changes, and ``problem`` the reason why the page
        has no content, or "".
        """
        return self._page.render(page=page, here=here, changes=changes, problem=problem)

    def section(self, section: Section) -> str:
        """Return the HTML of one section, as `page` writes it."""
        text: str = self._macros.module.section(section)  # type: ignore[attr-defined]
        return str(text).strip()

    def refused(self, why: str) -> str:
        """Return the page that explains why a request is refused."""
        return self._refused.render(why=why)


def _final(value: object) -> object:
    """Return a text without control characters, and any other value unchanged; the template engine escapes the result."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, allow="\n")
    return value


def _drawn(svg: str) -> Markup:
    """Return a drawing as HTML; it is made by `graph_to_svg`, which escapes every text."""
    return Markup(svg)  # noqa: S704 - see above
