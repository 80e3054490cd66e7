"""What of a package's start is done again when the daemon starts again (DESIGN §7, "Restart policy")."""

from enum import StrEnum

from wharfinger.packages.definition.definition import Layout


class Repeat(StrEnum):
    """What of a start is done again at every start of the daemon."""

    LAYOUT = "layout"
    """As the package's layout has it: always in addon-operator's, where it is needed in packages with a ``package.yaml``."""
    ALWAYS = "always"
    NEEDED = "needed"
    """Only what was not done, or is out of date."""

    def always(self, layout: Layout) -> bool:
        """Whether it is done again for packages of a layout."""
        return layout is Layout.MODULE_FOLDER if self is Repeat.LAYOUT else self is Repeat.ALWAYS
