"""The orchestrator: it discovers a tree, runs the controllers to their fixpoint, and returns manifests and failures.

May import all other folders of this part but ``output``.
"""
