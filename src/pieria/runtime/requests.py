"""Request bytes: one append-only body an agent, built fragment by fragment, its hash running along."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec.structs import replace

from pieria.core.context import added_messages, head_spec
from pieria.core.events.model import Request
from pieria.core.ports import Encoder, Texts
from pieria.core.state import Agent, State
from pieria.core.values import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

RECIPE = 1
"""Recipe 1: body = head + fragments joined by one comma + tail, UTF-8."""


class Position(NamedTuple):
    """A point in a body to which it can go back."""

    length: int
    fragments: int
    hash: Any


class Body:
    """The bytes of an agent's requests so far. Lone surrogates never get here: encoders replace them."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.fragments = 0
        self._hash = sha256()

    def start(self, head: str) -> None:
        """Begin anew with a head."""
        self.data = bytearray()
        self.fragments = 0
        self._hash = sha256()
        self._append(head.encode())

    def position(self) -> Position:
        """Where the body stands now."""
        return Position(len(self.data), self.fragments, self._hash.copy())

    def roll_back(self, to: Position) -> None:
        """Take back what was added since: it was never recorded."""
        del self.data[to.length :]
        self.fragments = to.fragments
        self._hash = to.hash

    def add(self, fragment: str) -> None:
        """Append one message."""
        data = fragment.encode()
        self._append(b"," + data if self.fragments else data)
        self.fragments += 1

    def _append(self, data: bytes) -> None:
        self.data += data
        self._hash.update(data)

    def seal(self, tail: str) -> tuple[str, int]:
        """Return sha256 and length of the body closed with the tail; the body stays open for more."""
        end = tail.encode()
        sealed = self._hash.copy()
        sealed.update(end)
        return sealed.hexdigest(), len(self.data) + len(end)

    def bytes(self, tail: str) -> bytes:
        """Return the body as sent."""
        return b"".join((self.data, tail.encode()))


def resolve(message: Message, texts: Texts) -> Message:
    """Return the message with every reference replaced by its text."""
    match message:
        case SystemMessage(parts=parts):
            return SystemMessage(tuple(texts.text(part) for part in parts))
        case UserMessage(text=text):
            return replace(message, text=texts.text(text))
        case AssistantMessage(text=text, reasoning=reasoning, calls=calls):
            resolved = tuple(replace(call, arguments=texts.text(call.arguments)) for call in calls)
            return replace(message, text=texts.text(text), reasoning=texts.text(reasoning), calls=resolved)
        case ToolMessage(text=text):
            return replace(message, text=texts.text(text))


def next_request(state: State, agent: Agent, body: Body, encoder: Encoder, texts: Texts) -> Request:
    """Extend the body by what the agent's next request adds and return the request by reference."""
    spec = head_spec(agent)
    head: str | None = None
    if agent.last_request is None:
        tools = tuple(
            replace(tool, description=texts.text(tool.description), parameters=texts.text(tool.parameters))
            for tool in spec.tools
        )
        head = encoder.head(replace(spec, tools=tools))
        body.start(head)
    added = tuple(encoder.fragment(resolve(message, texts)) for message in added_messages(state, agent))
    for fragment in added:
        body.add(fragment)
    digest, length = body.seal(encoder.tail)
    return Request(
        agent.last_request,
        added,
        RECIPE,
        encoder.version,
        digest,
        length,
        head,
        encoder.tail if head else None,
    )


def same_request(agent: Agent, body: Body, encoder: Encoder) -> Request:
    """The agent's last request once more: another attempt adds nothing."""
    digest, length = body.seal(encoder.tail)
    return Request(agent.last_request, (), RECIPE, encoder.version, digest, length)


class Bodies:
    """The bodies of all agents. Recorded requests are noted while a log is read, and resolved at first need."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._recorded: dict[str, list[Request]] = {}
        self._bodies: dict[str, Body] = {}

    def note(self, agent: str, request: Request) -> None:
        """Remember a recorded request of an agent."""
        if request.after is None:
            self._recorded[agent] = []
        self._recorded.setdefault(agent, []).append(request)

    def of(self, agent: str) -> Body:
        """The body of an agent up to its last recorded request."""
        if agent not in self._bodies:
            body = Body()
            for request in self._recorded.pop(agent, ()):
                extend(body, request, self._texts)
            self._bodies[agent] = body
        return self._bodies[agent]


def extend(body: Body, request: Request, texts: Texts) -> None:
    """Add a recorded request's fragments to a body."""
    if request.head is not None:
        body.start(texts.text(request.head))
    for fragment in request.add:
        body.add(texts.text(fragment))


Encoders = Mapping[tuple[str, int], Encoder]
"""Encoders by protocol and version. A version once released stays."""


def latest(encoders: Encoders, protocol: str) -> Encoder:
    """The newest encoder of a protocol."""
    version = max(number for name, number in encoders if name == protocol)
    return encoders[protocol, version]
