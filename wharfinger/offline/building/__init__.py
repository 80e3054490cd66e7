"""The programs and rules that make manifests: substitution, charts and their values.

May import ``sources``, ``discovery`` and ``store``.
"""
