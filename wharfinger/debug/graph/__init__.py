"""The graph of dependencies between packages: the model, its layout, and its drawing as text, SVG, DOT and Mermaid.

This folder may import ``client`` and the folders below it in the layers of pyproject.toml.
"""
