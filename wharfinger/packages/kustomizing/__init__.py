"""Kustomizations, plain manifests, and patches over a rendered chart (``spec.patches``).

``kustomization`` defines the inputs of a builder, and ``loads`` checks the files that a build reads. ``kustomize`` is the
builder that runs ``kubectl kustomize``, ``engine_kustomize`` is the builder that uses the chart engine, with the cache in
``build_cache``. ``manifest_renderer`` renders packages without a chart, and ``patched_render`` applies ``patches`` to a render.

This folder may import ``rendering`` and the folders below it in the layers of pyproject.toml.
"""
