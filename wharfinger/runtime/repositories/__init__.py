"""PackageRepositories: scans of their packages, their status, and the index of each package.

May import `scheduler`, `versions`, `resources`, `status`, and everything below them.
"""
