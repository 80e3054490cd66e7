"""The daemon's input: the fields of its resources, the names of packages, their settings, and the scope of their charts.

The resources are Applications, Modules and PackageRepositories.

This folder parses and checks API objects, and does not depend on the state of packages. It may import ``versions`` and the
folders below it in the layers of pyproject.toml.
"""
