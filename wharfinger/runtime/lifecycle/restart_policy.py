"""The restart policy: which parts of a package's start are repeated when the daemon starts again."""

from enum import StrEnum

from wharfinger.packages.definition.definition import Layout


class Repeat(StrEnum):
    """The parts of a start that are repeated at every start of the daemon."""

    LAYOUT = "layout"
    """The default of the package's layout: ALWAYS for addon-operator's layout, and NEEDED for packages with a
    ``package.yaml``.
    """
    ALWAYS = "always"
    NEEDED = "needed"
    """Only parts that were not done, or whose result is out of date."""

    def always(self, layout: Layout) -> bool:
        """Return whether the part is repeated at every start for packages of a layout."""
        return layout is Layout.MODULE_FOLDER if self is Repeat.LAYOUT else self is Repeat.ALWAYS
