"""Helm charts as files: Chart.yaml, .helmignore, archives.

May import ``files``.
"""
