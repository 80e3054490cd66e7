"""Kustomizations and plain manifests: what a build loads, the builders, their cache, the renderer of packages without a chart.

May import ``rendering`` and below.
"""
