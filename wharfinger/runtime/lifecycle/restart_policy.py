"""The restart policy: which parts of a package's start are repeated when the daemon starts again."""

from enum import StrEnum

from wharfinger.packages.definition.definition import Layout


class Repeat(StrEnum):
    """The policy for one part of a package's start, such as its onStartup hooks: whether each start of the daemon repeats it."""

    LAYOUT = "layout"
    """The default of the package's layout: ALWAYS for addon-operator's layout, and NEEDED for packages with a
    ``package.yaml``.
    """
    ALWAYS = "always"
    NEEDED = "needed"
    """The part is repeated only if it was not done, or if its result is out of date."""

    def always(self, layout: Layout) -> bool:
        """Return whether every start of the daemon repeats this part of a package's start; ``layout`` is the layout of the
        package.
        """
        return layout is Layout.MODULE_FOLDER if self is Repeat.LAYOUT else self is Repeat.ALWAYS
