"""The programs and rules that make manifests: substitution, charts and their values.

This folder may import ``sources``, ``discovery`` and ``store``.
"""
