"""Controllers that the API server itself runs: statuses and clean-up of CustomResourceDefinitions, APIServices of custom
groups, aggregated ClusterRoles.

May import ``framework``.
"""
