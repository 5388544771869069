"""Rules of the code, held by tests. Each one also plants a violation and sees itself go red."""
