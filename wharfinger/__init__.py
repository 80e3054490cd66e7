"""Wharfinger: the package runtime for Kubernetes.

The parts are the folders of this package (``queue/``, ``runtime/``, ...), so that ``wharfinger.queue`` can never be confused
with the standard library's ``queue``. The root of the repository has symbolic links to four of these folders; nothing is
imported through a link.
"""

import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

__version__ = "0.1.0"

# `import httpx` imports its command line if click, rich and pygments are installed. That takes 0.1 s and 5 MiB, and is not used.
sys.modules.setdefault("httpx._main", cast("ModuleType", None))
