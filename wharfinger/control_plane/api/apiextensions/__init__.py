"""The group apiextensions.k8s.io: validation and status of CustomResourceDefinitions.

The kinds made of them are in ``catalog``, checks of their objects in ``custom``.
"""
