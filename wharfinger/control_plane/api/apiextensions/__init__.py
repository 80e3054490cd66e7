"""The group apiextensions.k8s.io: validation and status of CustomResourceDefinitions.

The kinds that they define are in ``catalog``, the checks of their objects in ``custom``.
"""
