"""A hook of mkdocs. It replaces links to files outside of docs/ with links to the repository, and finds missing targets."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REPOSITORY = "https://github.com/wharfinger-dev/wharfinger/blob/main/"
"""The address of the repository, for files that are not pages."""
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def on_page_markdown(markdown: str, page: object, **_others: object) -> str:
    """Return the Markdown of a page with its links replaced for the site. Mkdocs calls this function for each page."""
    folder = (ROOT / "docs" / page.file.src_uri).parent  # type: ignore[attr-defined]  # of mkdocs
    return _LINK.sub(lambda found: found[1] + site_target(found[2], folder) + found[3], markdown)


def site_target(target: str, folder: Path) -> str:
    """Return the target of a link on a page in ``folder``. Raises FileNotFoundError if the target does not exist."""
    path, hash_sign, anchor = target.partition("#")
    if "://" in target or not path:
        return target
    file = (folder / path).resolve()
    if not file.exists():
        raise FileNotFoundError(f"{target}: linked in {folder}")
    if file.is_relative_to(ROOT / "docs") and file.is_file():
        return target
    return REPOSITORY + str(file.relative_to(ROOT)) + hash_sign + anchor
