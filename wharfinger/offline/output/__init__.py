"""The output of offline commands: manifests as text and as a folder, and the report of verdicts.

May import ``orchestrator`` and below.
"""
