"""Bind one session's ports together: which adapter serves which port is decided here and nowhere else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from pieria.core.errors import UsageError
from pieria.core.ports import Encoder, Files, Model, Tool
from pieria.core.values import AgentId, ToolSpec
from pieria.models.chat import ChatEncoderV1, ChatModel
from pieria.tools.specs import ALL

ENCODERS: Mapping[tuple[str, int], Encoder] = {("chat", 1): ChatEncoderV1(), ("scripted", 1): ChatEncoderV1()}
"""Every encoder that was ever released, by protocol and version."""

PROTOCOLS = ("chat", "scripted")


def tool_specs() -> tuple[ToolSpec, ...]:
    """What a writing agent's model is told of its tools."""
    return ALL


def agent_tools(files: Files) -> Callable[[AgentId, Callable[[str], str | None]], Mapping[str, Tool]]:
    """The factory that the loop uses: every agent has all tools; its roster entry says which it is told of."""
    path = os.environ.get("PATH", os.defpath)

    def tools(_id: AgentId, known: Callable[[str], str | None]) -> Mapping[str, Tool]:
        from pieria.tools.kit import kit

        return kit(files, known=known, search_path=path)

    return tools


def split_model(name: str) -> tuple[str, str]:
    """Split `[PROTOCOL:]NAME`. A name may hold colons itself: only a known protocol counts as one."""
    protocol, mark, rest = name.partition(":")
    if mark and protocol in PROTOCOLS:
        if not rest:
            raise UsageError(f"the model '{name}' has no name after its protocol", "e.g. chat:NAME or scripted:FILE")
        return protocol, rest
    return "chat", name


def cache_key(endpoint: str, session: str) -> str:
    """The hint that keeps a session on one cache, for hosts known to take it: strict ones refuse the field."""
    host = endpoint.partition("://")[2].partition("/")[0]
    return session if host == "api.openai.com" else ""


def make_model(protocol: str, *, endpoint: str, key: str) -> Model:
    """The adapter for an endpoint, its connection begun. Raises UsageError when the endpoint can't be one."""
    if protocol == "scripted":
        from pieria.models.scripted import ScriptedModel, load_script

        return ScriptedModel(load_script(endpoint.removeprefix("scripted:")))
    model = ChatModel(endpoint, key)
    model.connect_early()
    return model


def now() -> str:
    """The live clock in the form of records."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06d}Z"
