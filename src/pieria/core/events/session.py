"""Events of the session itself: birth, openings, settings, roster, blobs and marks."""

from __future__ import annotations

from pieria.core.events.row import Event, Row
from pieria.core.values import AgentId, Sampling, Text, ToolSpec, Value

MAGIC = "pieria"
FORMAT = 1


class Origin(Value, frozen=True, gc=False):
    """Where a forked log came from."""

    session: str
    seq: int


class Torn(Value, frozen=True, gc=False):
    """Bytes set aside at opening: an unacknowledged tail, copied beside the log before it was cut off."""

    bytes: int
    sha256: str
    copy: str


class SessionCreated(Event, frozen=True, gc=False):
    """Record 0: what is needed to read everything after it."""

    magic: str
    format: int
    session: str
    seed: int
    tool: str
    reducer: int
    recipe: int
    os: str
    boot_id: str
    cwd: str
    repository: str = ""
    origin: Origin | None = None


class SessionOpened(Event, frozen=True, gc=False):
    """A process took the log's lock. `unclean_ends` counts earlier openings that never closed."""

    pid: int
    start_time: int
    boot_id: str
    tool: str
    unclean_ends: int = 0
    torn: Torn | None = None
    moved_to: str = ""


class SettingsApplied(Event, frozen=True, gc=False):
    """What the person allows from here on: mode, rules and caps. Policy rules on this and nothing else.

    `deadline` is an absolute time. `endpoint` is where models are called; it is no part of a request's bytes.
    """

    mode: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    headless: bool = True
    contained: bool = False
    trusted: bool = False
    endpoint: str = ""
    max_steps: int | None = None
    max_tokens: int | None = None
    deadline: str = ""


class AgentAdded(Event, frozen=True, gc=False):
    """A standing agent joined the roster, with all that shapes its requests."""

    id: AgentId
    role: str
    protocol: str
    model: str
    system: Text
    tools: tuple[ToolSpec, ...]
    root: str
    sampling: Sampling = Sampling()
    cache_key: str = ""
    max_output: int | None = None


class Instruction(Value, frozen=True, gc=False):
    """One instruction file's text as it was read."""

    path: str
    text: Text


class ProjectObserved(Event, frozen=True, gc=False):
    """Facts of the place, taken once: they stand at the start of every agent's requests."""

    root: str
    facts: Text
    instructions: tuple[Instruction, ...] = ()
    git_head: str = ""
    git_branch: str = ""


class SessionClosed(Event, frozen=True, gc=False):
    """A clean end, with the outcome of the run: the label that training and scripts read."""

    outcome: str
    exit_code: int
    reason: str = ""


class Mark(Event, frozen=True, gc=False):
    """Nothing but its envelope: carries the durable watermark after an idle second."""


class BlobStored(Event, frozen=True, gc=False):
    """One part of a content; parts stand one after another. `base64` is used only for bytes that are not UTF-8."""

    part: int
    parts: int
    sha256: str
    len: int
    text: str = ""
    base64: str = ""


TABLE = (
    Row("session.created", SessionCreated, ("log",), "nothing to do: a log without it is no log"),
    Row("session.opened", SessionOpened, ("recovery",), "one without session.closed counts as an unclean end"),
    Row("settings.applied", SettingsApplied, ("accept",), "the next opening applies its own"),
    Row("agent.added", AgentAdded, ("accept",), "the agent is back with all its state"),
    Row("project.observed", ProjectObserved, ("accept",), "taken again only if it was not recorded"),
    Row("session.closed", SessionClosed, ("perform",), "nothing to do"),
    Row("mark", Mark, ("log",), "nothing to do", barrier="relaxed"),
    Row("blob", BlobStored, ("log",), "an unreferenced one is dead weight", barrier="relaxed"),
)
