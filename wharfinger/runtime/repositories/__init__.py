"""PackageRepositories: scans of their packages, their status, and the index of each package.

May import `versions`, `resources` and `status`, and below.
"""
