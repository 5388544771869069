"""Laws of the core under random worlds."""
