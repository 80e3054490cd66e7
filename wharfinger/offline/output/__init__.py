"""The output of offline commands: manifests, reports of failures and warnings, comparisons, findings, verdicts of tests, graphs.

May import ``checking``, ``testing`` and the folders below them in the layers of pyproject.toml.
"""
