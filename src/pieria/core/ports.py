"""What the core's effects need from the world, as protocols. Adapters implement them; runtime/perform calls them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from pieria.core.values import (
    AgentId,
    Change,
    Examined,
    FileHash,
    Message,
    OpId,
    Sampling,
    Text,
    ToolResult,
    ToolSpec,
    TouchedPath,
    Usage,
    Value,
)


class Place(Value, frozen=True, gc=False):
    """Where an agent works: real absolute paths. Relative paths of calls start at `root`."""

    root: str
    add_dirs: tuple[str, ...] = ()


# --- files -------------------------------------------------------------------------------------------------------


class FileImage(Value, frozen=True, gc=False):
    """A regular file as read in one go: `data` is all of it, `mode` the permission bits."""

    path: str
    data: bytes
    sha256: str
    mode: int


class FileProblem(Exception):
    """A file can't be read or changed; the text is fit for a model or a person, with no traceback.

    `kind`: absent, folder, special, too_big, denied, outside, refused, other.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Applied(Value, frozen=True, gc=False):
    """How a set of changes ended. `status`: done, conflict (nothing of ours remains), none (never begun), mixed."""

    status: str
    files: tuple[FileHash, ...] = ()
    detail: str = ""


class Files(Protocol):
    """Files by real path. Blocking: perform calls it in a thread."""

    def touch(self, given: str, place: Place) -> TouchedPath:
        """Find the real place of a path without opening it; links are followed, a missing tail is allowed."""
        ...

    def read(self, real: str, *, limit: int) -> FileImage:
        """Return a regular file of at most `limit` bytes, or raise FileProblem."""
        ...

    def hash(self, real: str) -> str | None:
        """Return the sha256 of a file's bytes, None when there is no regular file."""
        ...

    def apply(self, op: OpId, changes: Sequence[Change]) -> Applied:
        """Make all changes or none: `pre` and `post` must be resolved bytes or None (absent)."""
        ...

    def recover(self, op: OpId, changes: Sequence[Change]) -> Applied:
        """Finish or undo changes that a dead process had begun. Safe to repeat."""
        ...


# --- commands ----------------------------------------------------------------------------------------------------


class Spawned(Value, frozen=True, gc=False):
    """A gated supervisor that exists and has not been told to go."""

    pid: int
    start_time: int
    boot_id: str
    job: str


class Ended(Value, frozen=True, gc=False):
    """How a command ended. `exit_code` None with `unknown` True: nobody can tell what it did.

    `head` and `tail` are raw bytes of combined output, `output_bytes` counts all of it; the middle is left out.
    """

    exit_code: int | None
    head: bytes = b""
    tail: bytes = b""
    output_bytes: int = 0
    output_sha256: str = ""
    signal: str = ""
    timed_out: bool = False
    too_much: bool = False
    stopped: bool = False
    killed: tuple[str, ...] = ()
    unknown: bool = False
    reattached: bool = False
    never_ran: bool = False


class Processes(Protocol):
    """Commands under gated supervisors that outlive us."""

    def spawn(self, job: str, command: str, *, cwd: str, timeout_s: float) -> Spawned:
        """Start a supervisor that waits; nothing of the command runs. Raises OSError."""
        ...

    def go(self, job: str) -> None:
        """Let a spawned command run."""
        ...

    def abandon(self, job: str) -> None:
        """Drop a spawned command that was never told to go: it will not run."""
        ...

    async def wait(self, spawned: Spawned) -> Ended:
        """Wait for the end; the same for commands of this process and for ones re-attached after a restart."""
        ...

    def forget(self, job: str) -> None:
        """Remove what a command left: its result is recorded and durable."""
        ...

    def forget_others(self, kept: Collection[str]) -> None:
        """Remove what dead processes left of all jobs but these: what came of those is recorded and durable."""
        ...

    async def stop(self, spawned: Spawned) -> None:
        """TERM, then KILL, everything that the command started; `wait` then returns."""
        ...


# --- models ------------------------------------------------------------------------------------------------------


class HeadSpec(Value, frozen=True, gc=False):
    """What shapes the fixed part of a request."""

    model: str
    tools: tuple[ToolSpec, ...]
    sampling: Sampling
    cache_key: str = ""
    max_output: int | None = None


class Encoder(Protocol):
    """Pure functions from messages to wire text. All texts in arguments are resolved strings.

    The body of a request is head + fragments joined by "," + tail, as UTF-8. A version never changes its bytes.
    """

    @property
    def version(self) -> int: ...

    @property
    def tail(self) -> str: ...

    def head(self, spec: HeadSpec) -> str: ...

    def fragment(self, message: Message) -> str: ...


class AnswerCall(Value, frozen=True, gc=False):
    """A tool call as it came: `arguments` is raw text."""

    name: str
    arguments: str
    provider_id: str = ""


class Answer(Value, frozen=True, gc=False):
    """A complete answer: the stream said that it was over."""

    text: str
    calls: tuple[AnswerCall, ...] = ()
    reasoning: str = ""
    reasoning_field: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    model: str = ""
    response_id: str = ""
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


class BrokenStream(Value, frozen=True, gc=False):
    """The answer began and never ended: an attempt that does not count."""

    detail: str
    partial_bytes: int = 0


class Failure(Value, frozen=True, gc=False):
    """The provider or the network said no before any answer.

    `kind`: overloaded, rate_limited, too_long, refused, unauthorised, not_found, bad_request, bad_answer, network.
    """

    kind: str
    message: str
    status: int = 0
    retry_after_s: float | None = None


class Model(Protocol):
    """One provider endpoint."""

    async def stream(self, body: bytes, on_text: Callable[[str], None]) -> Answer | BrokenStream | Failure:
        """Send exactly `body`; call `on_text` with new answer text. Never raises for the world's faults."""
        ...

    async def close(self) -> None:
        """Drop connections."""
        ...


# --- tools -------------------------------------------------------------------------------------------------------


class Tool(Protocol):
    """One ability. `examine` changes nothing and may be repeated; `run` serves only tools of access read and note.

    Edits are applied by Files from the examined changes, commands by Processes; `finish` words their results.
    """

    @property
    def spec(self) -> ToolSpec: ...

    def examine(self, arguments: Mapping[str, object], place: Place) -> Examined: ...

    def run(self, facts: Examined, arguments: Mapping[str, object], place: Place) -> ToolResult: ...

    def applied(self, facts: Examined, outcome: Applied) -> ToolResult: ...

    def ended(self, facts: Examined, outcome: Ended) -> ToolResult: ...


# --- log ---------------------------------------------------------------------------------------------------------


class Texts(Protocol):
    """Resolves references of one log."""

    def text(self, ref: Text) -> str:
        """Return the text; a blob that is not UTF-8 is decoded with surrogateescape."""
        ...

    def data(self, ref: Text) -> bytes:
        """Return the bytes of a text, bytes or blob."""
        ...


class Secrets(Protocol):
    """Known secret values, masked as <<secret:NAME>> before recording and put back where the world needs them."""

    def mask(self, text: str) -> str: ...

    def reveal(self, text: str) -> str: ...


Progress = Callable[[AgentId, str], None]
Sleep = Callable[[float], Awaitable[None]]
