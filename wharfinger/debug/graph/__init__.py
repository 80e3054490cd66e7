"""Pictures of what packages need of each other: the model, its layers, and how it is drawn as text, SVG, DOT and Mermaid.

May import ``client`` and below.
"""
