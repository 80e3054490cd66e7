"""The output of offline commands: manifests, reports of failures and warnings, comparisons, findings, verdicts of tests, graphs.

This folder may import ``checking``, ``testing`` and the folders below them in the layers of pyproject.toml.
"""
