"""YAML as Kubernetes and Helm read and print it, with the line of every value.

May import ``json``.
"""
