"""The daemon's input: the fields of its resources, the names of packages, their settings, and the scope of their charts.

The resources are Applications, Modules and PackageRepositories.

Reads objects of the API into domain values and checks them. May import ``inspector`` and ``paths``; does not know what runs.
"""
