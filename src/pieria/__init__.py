"""Pieria: a terminal coding agent with a standing team and one append-only event log."""

__version__ = "0.1.0"
