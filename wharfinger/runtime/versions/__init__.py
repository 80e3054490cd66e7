"""Versions of packages: the index of a package's versions, the policy of a resource, and the choice of a version from both.

All modules are pure. They must not import other folders of `runtime`.
"""
