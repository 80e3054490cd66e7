"""Read a tree of manifests: find out which files are manifests, which objects they declare, and which Kustomizations build them.

This folder may import ``store``.
"""
