"""The group apiextensions.k8s.io: validation and status of CustomResourceDefinitions.

The kinds that definitions define are in ``catalog``, the checks of custom objects in ``custom``.
"""
