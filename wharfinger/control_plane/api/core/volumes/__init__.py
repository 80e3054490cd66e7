"""PersistentVolumes and PersistentVolumeClaims: validation and the admission plugins about storage.

May import ``pod_specs``.
"""
