"""A program with three agents, for the test beside it: `python -m tests.e2e.three_agents SESSIONS WORK URL [LOG]`.

What it does follows from the session's state, so that it may be killed and started again at any time.
"""

from __future__ import annotations

import asyncio
import os
import sys

from pieria.app.binding import tool_specs
from pieria.app.session import Front, Session, Setup, begin, go_on
from pieria.core.commands import Configure, SubmitPrompt
from pieria.core.errors import UsageError
from pieria.core.events.session import AgentAdded, SettingsApplied
from pieria.core.state import State
from pieria.core.values import AgentId
from pieria.core.view import outcome

NAMES = ("lead", "second", "third")


async def live(sessions: str, work: str, url: str, log: str) -> int:
    setup = Setup(
        cwd=work, root=work, model="chat:m", endpoint=url, settings=SettingsApplied("full", endpoint=url),
        sessions=sessions, environ=dict(os.environ),
    )  # fmt: skip
    front = Front(record=lambda _: None, durable=lambda _: None, progress=lambda *_: None, notice=print)
    session = await _opened(log, setup, front)
    for name in NAMES:
        await _put_to_work(session, AgentId(name), work)
    await session.loop.rest()
    ended = outcome(session.loop.state)
    await session.close(ended)
    return ended.exit_code


async def _opened(log: str, setup: Setup, front: Front) -> Session:
    def again(state: State) -> Setup:
        if not state.agents:
            raise UsageError("the session ended before it began")
        return setup

    if log:
        try:
            return await go_on(log, again, front)
        except UsageError:
            os.unlink(log)
    return begin(setup, front)


async def _put_to_work(session: Session, name: AgentId, work: str) -> None:
    if name not in session.loop.state.agents:
        root = f"{work}/{name}"
        await session.submit(Configure(AgentAdded(name, "worker", "chat", "m", "You help.", tool_specs(), root)))
    agent = session.loop.state.agents[name]
    if agent.turn is None and not agent.turns and not agent.unread:
        await session.submit(SubmitPrompt(name, f"[{name}] Go on."))


if __name__ == "__main__":
    sys.exit(asyncio.run(live(*sys.argv[1:4], *(sys.argv[4:] or [""]))))
