"""The group discovery.k8s.io: EndpointSlices.

The discovery documents of the API are in ``control_plane.discovery``.
"""
