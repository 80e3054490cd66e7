"""The group resource.k8s.io (dynamic resource allocation): device classes, ResourceClaims and ResourceSlices.

This package may import ``api.core``, ``api.storage`` and ``api.policy``.
"""
