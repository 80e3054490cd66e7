"""The work that a daemon repeats at its start. It depends on an option and on the layout of the package."""

import pytest

from wharfinger.packages.definition.definition import Layout
from wharfinger.runtime.lifecycle.restart_policy import Repeat


@pytest.mark.parametrize(
    ("repeat", "package", "module_folder"),
    [(Repeat.LAYOUT, False, True), (Repeat.ALWAYS, True, True), (Repeat.NEEDED, False, False)],
)
def test_repetition_depends_on_option_and_layout(repeat: Repeat, *, package: bool, module_folder: bool) -> None:
    assert repeat.always(Layout.PACKAGE) is package
    assert repeat.always(Layout.MODULE_FOLDER) is module_folder
