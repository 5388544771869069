"""Live a plan on a machine: open the session as the program does, let the person act, die or come to the end."""

from __future__ import annotations

import asyncio

from pieria.app.session import Front, Ground, Session, Setup, begin, go_on
from pieria.core.errors import UsageError
from pieria.core.state import State
from pieria.core.view import is_resting, outcome
from tests.crash.life import FastLoop, Halt, Life, bury
from tests.crash.machine import Machine, ground, note

LIMIT_S = 20.0
"""A life that takes longer in real time hangs."""
MOST_LIVES = 60
TICK_S = 0.5


class Hangs(AssertionError):
    """A session neither went on nor came to its end."""


async def _live(machine: Machine, life: Life) -> None:
    front = Front(
        record=lambda record: note(life, record),
        durable=lambda _: life.wake(),
        progress=lambda *_: None,
        notice=lambda _: None,
    )
    on, loop = ground(machine, life), asyncio.get_running_loop()
    session = life.session = await _opened(machine, front, on)
    person = asyncio.create_task(_person(machine, life, session))
    if machine.is_real:
        loop.call_later(TICK_S, _tick, life)
    over = asyncio.create_task(session.loop.rest(until=lambda state: is_resting(state) and _is_over(machine, state)))
    await asyncio.wait({person, over}, return_when=asyncio.FIRST_COMPLETED)
    if person.done():
        person.result()
    over.result()
    person.cancel()
    if machine.plan.waits_for_downtime(session.loop.state, was_down=machine.was_down) and not machine.plan.closes:
        life.die()
    await session.close(outcome(session.loop.state))
    life.log = None  # let go of already


def _tick(life: Life) -> None:
    """Look again from time to time: real commands tell nobody how far they are."""
    life.wake()
    life.loop.call_later(TICK_S, _tick, life)


async def _opened(machine: Machine, front: Front, on: Ground) -> Session:
    """Take the session up; one that died before it had an agent is begun anew, as the program tells the person to."""
    if machine.log:
        try:
            return await go_on(machine.log, lambda state: _setup(machine, state), front, ground=on)
        except UsageError:
            machine.begin_anew()
    return begin(machine.setup(), front, ground=on)


def _setup(machine: Machine, state: State) -> Setup:
    if not state.agents:
        raise UsageError("the session has no agent: it ended before it began")
    return machine.setup()


def _is_over(machine: Machine, state) -> bool:
    return machine.plan.is_over(state, machine.kernel, was_down=machine.was_down)


async def _person(machine: Machine, life: Life, session: Session) -> None:
    plan, kernel = machine.plan, machine.kernel
    while True:
        state = session.loop.state
        if plan.wants_power_cut(kernel):
            life.die()
        command = plan.due(state, kernel, was_down=machine.was_down)
        if command is not None:
            await session.submit(command)
            continue
        seen = state.seq
        await life.until(
            lambda seen=seen: (
                session.loop.state.seq != seen
                or plan.wants_power_cut(kernel)
                or plan.due(session.loop.state, kernel, was_down=machine.was_down) is not None
            )
        )


def live(machine: Machine, loop: FastLoop, *, stop_at: int = 0) -> Life:
    """Let one process live until it ends or dies. Raises what goes wrong in it."""
    life = Life(loop, stop_at=stop_at)
    troubles = life.troubles

    def take(_: object, context: dict) -> None:
        if not life.dead and not isinstance(context.get("exception"), Halt):
            troubles.append(f"{context.get('message')}: {context.get('exception')!r}")

    loop.set_exception_handler(take)
    life.after_step = lambda step: machine.keep(step, life.log.durable if life.log is not None else -1)
    main = loop.create_task(_live(machine, life))
    watch = loop.call_later(LIMIT_S * 50, _give_up, main)
    try:
        loop.run_until_complete(main)
    except Halt:
        assert life.dead
    except asyncio.CancelledError:
        where = life.session.loop.state if life.session else None
        raise Hangs(f"after {life.steps[-5:]}: {str(where)[:500]}") from None
    finally:
        watch.cancel()
        bury(life, loop)
    return life


def _give_up(main: asyncio.Task) -> None:
    main.cancel()


def between(machine: Machine) -> None:
    """What the world does after the death of a process, before the next one."""
    machine.kernel.parent_died()
    if machine.plan.wants_power_cut(machine.kernel):
        machine.kernel.reboot()


def to_the_end(machine: Machine, loop: FastLoop) -> list[Life]:
    """Live until the plan is done, with the downtimes and power cuts that it holds."""
    lives = []
    for _ in range(MOST_LIVES):
        life = live(machine, loop)
        lives.append(life)
        plan = machine.plan
        state = life.session.loop.state
        died = life.log is not None
        if died and plan.wants_power_cut(machine.kernel):
            between(machine)
            machine.keep("power cut", -1)
            continue
        between(machine)
        if plan.waits_for_downtime(state, was_down=machine.was_down):
            machine.change_file()
            machine.keep("a file changed", -1)
            continue
        if died:
            raise AssertionError(f"died unasked: {life.steps[-3:]} {life.troubles}")
        return lives
    raise Hangs("it dies again and again")
