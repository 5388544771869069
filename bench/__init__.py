"""Benchmarks: they print tables and never judge. `python -m bench [NAME ...]` runs them, all by default."""
