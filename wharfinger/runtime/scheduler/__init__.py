"""The scheduler, which decides which packages may be on, and in which order they run. The gates decide which packages may be
on. The engine of ``fixpoint`` lets each package wait for its dependencies, and for the packages of lower orders.

Pure. This folder may import ``status`` and the folders below it in the layers of pyproject.toml; ``core`` carries out the
decisions.
"""
