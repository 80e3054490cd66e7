"""PersistentVolumes and PersistentVolumeClaims: validation, and the admission plugins for storage.

This package may import ``pod_specs``.
"""
