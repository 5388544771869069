"""The front end without a terminal: records and words go out, nothing is asked."""
