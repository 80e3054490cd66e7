"""What the server refuses in an object: :mod:`.objects` asks the rules of each kind, which stand by area.

Pure: objects in, :class:`~wharfinger.cluster.control_plane.status.FieldError`\\ s out, worded as kube-apiserver words them.
"""
