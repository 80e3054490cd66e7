"""The group apiextensions.k8s.io: validation and status of CustomResourceDefinitions.

The kinds that these definitions define are in ``catalog``; the checks of custom objects are in ``custom``.
"""
