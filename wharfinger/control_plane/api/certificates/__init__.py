"""The group certificates.k8s.io: CertificateSigningRequests.

This folder may import ``api.core``.
"""
