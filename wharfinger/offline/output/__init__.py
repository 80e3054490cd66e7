"""The output of offline commands: manifests as text and as a folder, and the report of failures and warnings.

May import ``orchestrator`` and the folders below it in the layers of pyproject.toml.
"""
