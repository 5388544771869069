"""Adapters to model providers, one file a protocol. Nothing outside this package speaks HTTP to a model."""
