"""The versions of Kubernetes that a control plane can follow, and the option that chooses one of them."""

import argparse
from typing import Final

RELEASES: Final = {"1.36": "v1.36.2", "1.37": "v1.37.1"}
"""The supported versions, each with the patch release that the control plane follows; the first one is the default."""
DEFAULT: Final = next(iter(RELEASES))


def add_kubernetes_version(parser: argparse.ArgumentParser, condition: str) -> None:
    """Add ``--kubernetes-version`` (its help begins with ``condition``) to a command that starts a control plane."""
    parser.add_argument(
        "--kubernetes-version",
        choices=tuple(RELEASES),
        default=DEFAULT,
        metavar="VERSION",
        help=f"{condition}the version of Kubernetes whose API is served: {' or '.join(RELEASES)} (default: %(default)s)",
    )
