"""The reading of a tree of manifests: which files are manifests, which objects they declare, and which Kustomizations build
the files.

This folder may import ``store``.
"""
