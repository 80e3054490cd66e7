"""Kustomize: the seam of its builders, and its patches over a rendered chart (``spec.patches``).

``kustomization`` has what a builder builds, ``kustomize`` the builder that runs ``kubectl kustomize``, ``engine_kustomize`` the
one that uses the engine, with ``build_cache`` before it. ``patches`` has the form of a patch, and ``patched_render`` applies
patches to a render. May import ``rendering`` and below.
"""
