"""The tree of errors that a person sees, each with a hint and an exit code.

PieriaError
├── UsageError          2  wrong arguments, bad config, no model
├── ApprovalNeeded      3  leave, trust or a plan's approval is missing
├── SessionBusy         5  another process holds the session
├── LogCorrupt          6  a log that can't be trusted, or a replay that differs
└── TryAgain           75  overloaded provider, broken network
"""

from __future__ import annotations


class PieriaError(Exception):
    """What happened (`str(error)`), then `hint`: what to do. Printed without a traceback."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(PieriaError):
    """The person's mistake: arguments, config, or no model to talk to."""

    exit_code = 2


class ApprovalNeeded(PieriaError):
    """Refused for want of leave, trust or a plan's approval."""

    exit_code = 3


class SessionBusy(PieriaError):
    """The session is in use by another process."""

    exit_code = 5


class LogCorrupt(PieriaError):
    """The log can't be trusted, or a replay differs from it."""

    exit_code = 6


class TryAgain(PieriaError):
    """Nothing is wrong here: worth trying again later."""

    exit_code = 75
