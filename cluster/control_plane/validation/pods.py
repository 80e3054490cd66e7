"""The rules of Pods and pod templates."""

from typing import Final

from wharfinger.cluster.control_plane.validation.rules import Rules

POD_RULES: Final[dict[str, Rules]] = {}
