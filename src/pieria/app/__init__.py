"""The composition root: the only place that knows every package and binds them together."""
