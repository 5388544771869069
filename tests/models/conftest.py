"""Both kinds of a model behind one port: Chat Completions over a real socket, and the script in process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import msgspec
import pytest

from pieria.core.ports import Answer, BrokenStream, Failure
from pieria.models.chat import ChatModel
from pieria.models.exchange import Timeouts
from pieria.models.script import Received, parse_script
from pieria.models.scripted import ScriptedModel
from pieria.models.scripted_server import ScriptedServer

KEY = "sk-test-0123456789"


@dataclass
class Asked:
    """A model that was given a script, and what came of it."""

    model: ChatModel | ScriptedModel
    received: list[Received]
    shown: list[str] = field(default_factory=list)

    async def ask(self, body: bytes) -> Answer | BrokenStream | Failure:
        """Send a body; what the model shows meanwhile is in `shown`."""
        self.shown = []
        return await self.model.stream(body, self.shown.append)


Start = Callable[..., Awaitable[Asked]]


def body(*roles: str, text: str = "hello") -> bytes:
    """Return a request with messages of these roles, as bytes."""
    messages = [{"role": role, "content": text} for role in roles or ("system", "user")]
    return msgspec.json.encode({"model": "m", "stream": True, "messages": messages})


@pytest.fixture(params=["socket", "in process"])
async def start(request: pytest.FixtureRequest) -> AsyncIterator[Start]:
    """Return a function that starts a model on a script: a list of answers, or several scripts."""
    closers: list[Callable[[], Awaitable[None]]] = []

    async def begin(script: object, *, timeouts: Timeouts | None = None) -> Asked:
        scripts = parse_script(msgspec.json.encode(script))
        if request.param == "in process":
            played = ScriptedModel(scripts, timeouts=timeouts)
            return Asked(played, played.received)
        server = ScriptedServer(scripts)
        model = ChatModel(await server.start(), KEY, timeouts=timeouts)
        closers.extend((server.stop, model.close))
        return Asked(model, server.received)

    yield begin
    for close in reversed(closers):
        await close()
