"""The event log on disk: one writer, one file a session, nothing read or shown that does not verify."""
