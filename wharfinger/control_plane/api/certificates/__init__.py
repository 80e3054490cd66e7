"""The group certificates.k8s.io: CertificateSigningRequests.

May import ``api.core``.
"""
