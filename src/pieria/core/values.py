"""Values that events, state and ports share. Everything here is immutable and means the same in log and memory."""

from __future__ import annotations

from typing import Literal, NewType

import msgspec

AgentId = NewType("AgentId", str)
CallId = NewType("CallId", str)
OpId = NewType("OpId", str)

PERSON = AgentId("person")
SESSION = AgentId("session")

INLINE_BYTES = 2048
"""Texts longer than this many UTF-8 bytes are kept as blob records and referenced."""


class Value(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=False):
    """Base of all recorded values: immutable, defaults left out on disk, unknown fields of later versions ignored."""


class Blob(Value, frozen=True, gc=False):
    """A reference to content kept in blob records: `seq` is the first part, `len` counts bytes of the content."""

    seq: int
    sha256: str
    len: int


Text = str | Blob
"""Text in an event: inline when short, by reference when long. Bytes that are not UTF-8 are texts too, decoded with
surrogateescape (each such byte a lone surrogate): the log keeps those as base64 blobs and gives them back the same."""

Access = Literal["read", "edit", "shell", "note"]
"""What a tool may touch: read files, change files, run a command, or nothing but its own result."""


class Call(Value, frozen=True, gc=False):
    """One tool call as the model asked for it; `arguments` is the raw text, valid JSON or not."""

    id: CallId
    name: str
    arguments: Text
    provider_id: str = ""


class Usage(Value, frozen=True, gc=False):
    """Tokens as the provider counted them; an absent count is unknown, never zero."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class Sampling(Value, frozen=True, gc=False):
    """Sampling parameters sent with a request; None leaves the provider's default."""

    temperature: float | None = None
    max_tokens: int | None = None
    effort: str | None = None


class ToolSpec(Value, frozen=True, gc=False):
    """A tool as a model is told of it; `parameters` is JSON Schema text, recorded byte for byte."""

    name: str
    version: int
    access: Access
    description: Text
    parameters: Text


class Change(Value, frozen=True, gc=False):
    """One file's change. Hashes are sha256 hex of real bytes; None means the file is absent on that side.

    `path` is the real absolute path. `pre` and `post` hold the content (masked) for showing, redo and rollback.
    """

    path: str
    pre_sha256: str | None
    post_sha256: str | None
    mode: int | None = None
    pre: Text | None = None
    post: Text | None = None


class TouchedPath(Value, frozen=True, gc=False):
    """A path that a call names: as `given`, its `real` place, and what policy must know of it."""

    given: str
    real: str
    inside: bool
    guarded: bool = False
    secret: bool = False


class Examined(Value, frozen=True, gc=False):
    """Everything policy rules on. `error` non-empty: the call can't run, and that text is its result.

    `command` is the shell text with secrets still masked; `words` its plain words, None when it has shell syntax.
    `action` is the sha256 of the exact action with its pre-images: an approval is bound to it.
    `secrets` names known secrets whose values the call would use.
    """

    access: Access
    action: str
    error: Text = ""
    paths: tuple[TouchedPath, ...] = ()
    command: Text = ""
    words: tuple[str, ...] | None = None
    cwd: str = ""
    timeout_s: float = 0.0
    changes: tuple[Change, ...] = ()
    diff: Text = ""
    note: Text = ""
    secrets: tuple[str, ...] = ()


class Todo(Value, frozen=True, gc=False):
    """One line of an agent's task list."""

    text: str
    state: Literal["open", "doing", "done"]


class FileHash(Value, frozen=True, gc=False):
    """A file's known content: sha256 of its bytes, None when absent."""

    path: str
    sha256: str | None


class Details(Value, frozen=True, gc=False):
    """Typed facts about a finished call for people and policy; the model sees only the result text."""

    exit_code: int | None = None
    signal: str = ""
    timed_out: bool = False
    output_bytes: int | None = None
    output_sha256: str = ""
    killed: tuple[str, ...] = ()
    reattached: bool = False
    files: tuple[FileHash, ...] = ()
    todo: tuple[Todo, ...] | None = None
    conflict: bool = False


class ToolResult(Value, frozen=True, gc=False):
    """What a tool returns: the exact text for the model, whether it is an error, and details."""

    text: Text
    error: bool = False
    details: Details = Details()


class SystemMessage(Value, frozen=True, gc=False, tag="system", tag_field="kind"):
    """The fixed start of every request: the parts are joined by one empty line."""

    parts: tuple[Text, ...]


class UserMessage(Value, frozen=True, gc=False, tag="user", tag_field="kind"):
    """Words for the model: the person's own when `label` is empty, else the harness's, labelled."""

    text: Text
    label: str = ""


class AssistantMessage(Value, frozen=True, gc=False, tag="assistant", tag_field="kind"):
    """A committed answer. `reasoning_field` is the wire name under which reasoning came, for sending it back."""

    text: Text
    calls: tuple[Call, ...] = ()
    reasoning: Text = ""
    reasoning_field: str = ""


class ToolMessage(Value, frozen=True, gc=False, tag="tool", tag_field="kind"):
    """The one result of one call."""

    call: CallId
    name: str
    text: Text


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage
