"""PackageRepositories: scans of their packages, their status, and the index of each package.

May import `scheduler`, `versions`, `resources` and `status`, and below.
"""
