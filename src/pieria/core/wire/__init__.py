"""Framing of wire protocols: bytes in, messages out, no sockets."""
