"""The orchestrator: it discovers a tree, runs the controllers to their fixpoint, and returns manifests and failures.

This folder may import ``controllers`` and the folders below it in the layers of pyproject.toml.
"""
