"""Kustomize's patches over a rendered chart (``spec.patches``): read, checked, and applied by kustomize itself.

``patches`` has the form of a patch, ``patched_render`` applies patches to a render, ``kustomization`` and ``kustomize`` are the
seam to kustomize, which offline builds use as well. May import ``rendering`` and below.
"""
