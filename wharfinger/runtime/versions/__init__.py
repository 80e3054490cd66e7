"""Versions of packages: the index of a package's versions, the policy of a resource, and the choice that follows from both.

Everything here is pure. May import nothing of `runtime`.
"""
