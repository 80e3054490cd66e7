"""Kustomizations and plain manifests: what a build loads, the builders, their cache, the renderer of packages without a chart,
and kustomize's patches over a rendered chart (``spec.patches``: ``patches``, ``patched_render``).

May import ``rendering`` and below.
"""
