"""An author's tests of the objects that a package or a tree builds: the files with tests, and their verdicts.

This folder may import ``orchestrator`` and the folders below it in the layers of pyproject.toml.
"""
