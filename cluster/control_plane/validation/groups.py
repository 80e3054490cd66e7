"""The rules of kinds of the other groups: networking, rbac, storage, admissionregistration, scheduling and more."""

from typing import Final

from wharfinger.cluster.control_plane.validation.rules import Rules

GROUP_RULES: Final[dict[str, Rules]] = {}
