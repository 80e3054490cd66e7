"""The verbs create, update, patch, delete, get, list, watch and scale.

The verbs are synchronous functions of the backend, so that each request is one atomic step; only ``watching`` waits. The
package also has the parts of a request that a verb needs: its options and its accepted body. This folder may import ``admission``
and the folders below it in the layers of pyproject.toml.
"""
