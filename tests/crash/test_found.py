"""Faults that the campaign has found, each in its smallest form."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from pieria.app.session import Front, Ground, Setup, begin, real_world
from pieria.core.commands import Interrupt, SubmitPrompt
from pieria.core.events.model import StepLost, StepStarted
from pieria.core.events.session import SettingsApplied
from pieria.core.record import Record
from pieria.core.values import AgentId
from pieria.core.view import outcome


class Silent:
    """A model that never answers."""

    async def stream(self, body, on_text):
        await asyncio.Event().wait()

    async def close(self):
        pass


async def test_an_interrupt_in_the_same_breath_as_a_request_ends_the_turn(tmp_path: Path) -> None:
    """The request's job was cancelled before its first step, so that nothing closed the operation."""
    records: list[Record] = []
    jobs = set()

    def record(entry: Record) -> None:
        records.append(entry)
        if isinstance(entry.data, StepStarted):
            jobs.add(asyncio.ensure_future(session.submit(Interrupt())))

    def world(id, log, setup):
        return replace(real_world(id, log, setup), model=lambda _: Silent())

    setup = Setup(
        cwd=str(tmp_path), root=str(tmp_path), model="scripted:x", endpoint="", settings=SettingsApplied("full"),
        sessions=str(tmp_path / "sessions"),
    )  # fmt: skip
    front = Front(record=record, durable=lambda _: None, progress=lambda *_: None, notice=lambda _: None)
    session = begin(setup, front, ground=Ground(world))
    await session.submit(SubmitPrompt(AgentId("lead"), "Go on."))
    await asyncio.wait_for(session.loop.rest(), 10)
    assert [entry.data.reason for entry in records if isinstance(entry.data, StepLost)] == ["interrupted"]
    assert session.loop.state.agents[AgentId("lead")].last_end == "interrupted"
    await session.close(outcome(session.loop.state))
