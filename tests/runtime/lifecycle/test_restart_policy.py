"""What is done again at a start of the daemon, by option and layout."""

import pytest

from wharfinger.packages.definition.definition import Layout
from wharfinger.runtime.lifecycle.restart_policy import Repeat


@pytest.mark.parametrize(
    ("repeat", "package", "module_folder"),
    [(Repeat.LAYOUT, False, True), (Repeat.ALWAYS, True, True), (Repeat.NEEDED, False, False)],
)
def test_what_is_done_again(repeat: Repeat, *, package: bool, module_folder: bool) -> None:
    assert repeat.always(Layout.PACKAGE) is package
    assert repeat.always(Layout.MODULE_FOLDER) is module_folder
