"""Kustomizations, plain manifests, and patches over a rendered chart (``spec.patches``).

``kustomization`` has what a builder builds, and ``loads`` checks what a build reads. ``kustomize`` is the builder that runs
``kubectl kustomize``, ``engine_kustomize`` the one that uses the engine, with ``build_cache`` before it. ``manifest_renderer``
renders packages without a chart, and ``patched_render`` applies ``patches`` to a render. May import ``rendering`` and below.
"""
