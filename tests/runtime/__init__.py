"""The loop and recovery over ports that live in memory."""
