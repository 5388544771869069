"""The ports of one session, bound together by app and handed to the loop as one value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from pieria.core.events.session import AgentAdded
from pieria.core.ports import Files, Model, Processes, Secrets, Texts, Tool
from pieria.core.record import Draft, Record
from pieria.core.values import AgentId
from pieria.runtime.requests import Encoders


class Log(Protocol):
    """The one log of a session. `append` writes at once and raises PieriaError when the disk will not take it."""

    @property
    def durable(self) -> int: ...

    def append(self, drafts: Sequence[Draft], *, outcome: bool = False) -> tuple[Record, ...]: ...

    async def synced(self, seq: int) -> None: ...


class World(msgspec.Struct):
    """Everything outside that effects use. `tools` makes an agent's tools, given what it knows of files.

    `own_keys` names secrets that no call may use; `begun_secret` counts the characters at a text's end with which a
    value may have begun. `before_command` is called before each command is spawned, `stand_by` while a model thinks:
    what the next command needs may be made ready then; `let_go` at the end. `mend`: after a sync that failed, move the
    log to a new file or raise PieriaError.
    """

    log: Log
    mend: Callable[[], Awaitable[None]]
    texts: Texts
    files: Files
    processes: Processes
    secrets: Secrets
    encoders: Encoders
    model: Callable[[AgentAdded], Model]
    tools: Callable[[AgentId, Callable[[str], str | None]], Mapping[str, Tool]]
    parse: Callable[[str, str], dict[str, object] | str]
    nearest: Callable[[str, Sequence[str]], str]
    now: Callable[[], str]
    before_command: Callable[[], None] = lambda: None
    stand_by: Callable[[], None] = lambda: None
    let_go: Callable[[], None] = lambda: None
    own_keys: frozenset[str] = frozenset()
    begun_secret: Callable[[str], int] = lambda _text: 0
    add_dirs: tuple[str, ...] = ()
