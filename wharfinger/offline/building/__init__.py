"""The programs and rules that make manifests: kustomize with its overlay and cache, substitution, charts and their values.

May import ``sources``, ``discovery`` and ``store``.
"""
