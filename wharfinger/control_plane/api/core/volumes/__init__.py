"""PersistentVolumes and PersistentVolumeClaims: validation, and the admission plugins for storage.

May import ``pod_specs``.
"""
