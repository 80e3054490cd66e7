"""YAML as Kubernetes and Helm read and print it, with the lines of every value.

May import ``json``.
"""
