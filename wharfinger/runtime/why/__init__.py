"""Why a package is as it is: the causes behind its state, from the package to the root, each with what to do about it.

Pure functions over snapshots. May import ``scheduler`` and below.
"""
