"""The group storage.k8s.io: StorageClasses, CSI drivers, capacities, attachments, attributes classes.

Volumes and claims are in ``api.core.volumes``. This package may import ``api.core``.
"""
