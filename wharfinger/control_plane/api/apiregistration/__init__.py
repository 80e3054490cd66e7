"""The group apiregistration.k8s.io: APIServices.

May import ``api.core``.
"""
