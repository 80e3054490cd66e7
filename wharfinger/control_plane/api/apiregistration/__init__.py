"""The group apiregistration.k8s.io: APIServices.

This folder may import ``api.core``.
"""
