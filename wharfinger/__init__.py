"""Wharfinger: the package runtime for Kubernetes.

The parts of the program are the folders of this package (``queue/``, ``runtime/``, ...), so the part ``wharfinger.queue`` and the
standard library's ``queue`` have different names. The root of the repository has symbolic links to four of these folders, but
nothing is imported through a link.
"""

import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

__version__ = "0.1.0"

# `import httpx` also imports httpx's command line if click, rich and pygments are installed. This import takes 0.1 s and 5 MiB,
# although the command line is not used.
sys.modules.setdefault("httpx._main", cast("ModuleType", None))
