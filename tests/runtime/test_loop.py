"""What the loop owes whatever breaks: it comes to rest, closes what it opened once, and hides no mistake of ours."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pieria.core.commands import AnswerApproval, Interrupt, Rejected, SubmitPrompt
from pieria.core.events.calls import ApprovalAnswered, CallExamined, ToolInterrupted
from pieria.core.events.model import StepStarted
from pieria.core.events.session import AgentAdded
from pieria.core.events.turns import TimerFired, TimerSet, TurnFinished
from pieria.core.fold import fold
from pieria.core.ports import BrokenStream, Ended
from pieria.core.record import Draft, type_name
from pieria.core.state import State
from pieria.core.values import AgentId, OpId
from pieria.runtime import outcomes
from pieria.runtime.recovery import recover
from tests.runtime.ports import LATER, ROOT, Bench, MemoryLog

PROMPT = SubmitPrompt("lead", "do it")


async def test_a_turn_runs_from_a_prompt_to_its_answer() -> None:
    bench = Bench()
    bench.model.says("", "read", "shell")
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bench.turn.calls and bench.turn.calls[1].spawned)
    bench.commands.ends["lead.1.1"].set_result(Ended(0))
    bench.model.says("done")
    await bench.rest()
    assert bench.log.names()[-1] == "TurnFinished"
    assert bench.commands.ran == ["lead.1.1"]


async def test_an_interrupt_in_a_wait_for_another_attempt_fires_its_timer_once_and_comes_to_rest() -> None:
    bench = Bench()
    bench.model.answers.put_nowait(BrokenStream("cut"))
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(state.timers))
    op = next(iter(bench.loop.state.timers))
    await bench.loop.submit(Interrupt())
    await bench.rest()
    bench.log.time = LATER
    await bench.loop.close()
    assert bench.log.of(op) == ["TimerSet", "TimerFired"]


async def test_another_deadline_ends_the_wait_for_the_one_before_once() -> None:
    bench = Bench()
    await bench.settle_to(LATER)
    old = next(iter(bench.loop.state.timers))
    await bench.settle_to("2026-01-02T00:00:00.000000Z")
    await bench.rest()
    await bench.loop.close()
    assert bench.log.of(old) == ["TimerSet", "TimerFired"]
    assert bench.log.names().count("TimerSet") == 2


async def test_an_interrupt_while_an_edit_is_looked_at_comes_to_rest_and_drops_what_was_seen() -> None:
    bench = Bench()
    looking, enough = threading.Event(), threading.Event()

    def gate() -> None:
        looking.set()
        enough.wait(5)

    bench.tools["edit"].gate = gate
    bench.model.says("", "edit")
    await bench.loop.submit(PROMPT)
    await asyncio.to_thread(looking.wait, 5)
    await bench.loop.submit(Interrupt())
    enough.set()
    await bench.rest()
    assert "CallExamined" not in bench.log.names()
    assert bench.log.names()[-1] == "TurnFinished"


@pytest.mark.parametrize("tool", ["read", "edit"])
async def test_a_fault_in_looking_is_the_result_of_the_call(tool) -> None:
    bench = Bench()
    bench.model.says("", tool)
    await bench.loop.submit(PROMPT)

    def gate() -> None:
        raise RuntimeError("broken tool")

    bench.tools[tool].gate = gate
    bench.model.says("sorry")
    await bench.rest()
    (seen,) = [record.data for record in bench.log.records if isinstance(record.data, CallExamined)]
    assert "broken tool" in seen.facts.error


async def test_arguments_that_can_not_be_read_back_are_the_result_of_the_call() -> None:
    bench = Bench()
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.model.bodies))
    bench.texts.is_broken = True
    bench.tools["edit"].gate = lambda: None
    bench.model.says("", "edit")
    await bench.until(lambda state: any(type_name(record) == "call.examined" for record in bench.log.records))
    (seen,) = [record.data for record in bench.log.records if isinstance(record.data, CallExamined)]
    assert "Input/output error" in seen.facts.error
    await bench.loop.close()


async def test_a_mistake_of_ours_in_a_job_ends_the_session_instead_of_hanging_it() -> None:
    bench = Bench()
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.model.bodies))
    bench.texts.is_broken = True
    bench.model.says("", "Reed")
    with pytest.raises(OSError, match="Input/output"):
        await bench.rest()
    await bench.loop.close()


async def test_a_command_that_can_not_be_stopped_hides_no_fault_and_hangs_nothing() -> None:
    bench = Bench()
    bench.commands.breaks_on_stop = True
    bench.model.says("", "shell")
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.commands.ran))
    await bench.loop.submit(Interrupt())
    with pytest.raises(ProcessLookupError):
        await bench.rest()
    await bench.loop.close()


async def test_what_breaks_is_closed_by_a_type_that_may_close_it() -> None:
    bench = Bench()
    await bench.loop.submit(PROMPT)
    await bench.settle_to(LATER)
    agent = bench.loop.state.agents["lead"]
    problem = ValueError("x")
    step = outcomes.failed(agent, "lead", agent.turn.step.op, problem)
    timer = outcomes.failed(None, "session", OpId("session.9"), problem)
    assert [type(draft.event).__name__ for draft in (*step, *timer)] == ["StepFailed", "TimerFired"]
    await bench.loop.close()


# --- a disk that refuses ----------------------------------------------------------------------------------------------


async def asking() -> tuple[Bench, OpId]:
    bench = Bench("ask")
    bench.model.says("", "shell")
    await bench.loop.submit(PROMPT)
    await bench.rest()
    return bench, next(iter(bench.loop.state.approvals))


async def test_two_answers_given_while_the_disk_refuses_are_one() -> None:
    bench, op = await asking()
    bench.log.refuses = True
    both = asyncio.gather(*(bench.loop.submit(AnswerApproval(op, said)) for said in ("deny", "deny")))
    await asyncio.sleep(0)
    bench.log.refuses = False
    bench.model.says("ok")
    first, second = await asyncio.wait_for(both, 5)
    assert isinstance(first.data, ApprovalAnswered)
    assert isinstance(second, Rejected)
    await bench.rest()
    assert bench.log.of(op) == ["ApprovalRequested", "ApprovalAnswered"]


async def test_an_outcome_waits_for_the_disk_and_nothing_begins_meanwhile() -> None:
    bench = Bench()
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.model.bodies))
    bench.log.refuses = True
    bench.model.says("", "shell")
    await bench.until(lambda state: bool(bench.pauses))
    assert bench.commands.ends == {}
    bench.log.refuses = False
    await bench.until(lambda state: bool(bench.commands.ran))
    await bench.loop.close()


async def test_what_waits_for_the_disk_is_written_before_anything_new_is_decided() -> None:
    bench = Bench()
    other = AgentAdded(AgentId("other"), "lead", "script", "m", "s", (), ROOT)
    bench.loop.writer.configure([Draft("session", other)])
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.model.bodies))
    bench.log.refuses = True
    bench.model.says("done")
    await bench.until(lambda state: bool(bench.pauses))
    bench.log.refuses = False
    await bench.loop.submit(SubmitPrompt("other", "you too"))
    bench.model.says("done too")
    await bench.rest()
    names = [(record.agent, type_name(record)) for record in bench.log.records]
    assert names.index(("lead", "step.finished")) < names.index(("other", "turn.started"))


async def test_closing_while_the_disk_refuses_leaves_nobody_trying() -> None:
    bench = Bench()
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.model.bodies))
    bench.log.refuses = True
    bench.model.says("done")
    await bench.until(lambda state: bool(bench.pauses))
    await bench.loop.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- opening again ----------------------------------------------------------------------------------------------------


def reopened(bench: Bench) -> Bench:
    """Another process opens what the first one left."""
    log = MemoryLog()
    log.records, log.time = list(bench.log.records), bench.log.time
    state = State()
    for record in log.records:
        state = fold(state, record)
    return Bench(state=state, log=log)


async def test_a_command_that_never_began_begins_once_after_a_restart() -> None:
    bench = Bench()
    bench.model.says("", "shell")
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.turn.calls and bench.turn.calls[0].spawned))
    again = reopened(bench)
    await recover(again.loop)
    await again.until(lambda state: bool(again.commands.ran))
    assert again.commands.ran == ["lead.1.0-again"]
    await again.loop.close()
    await bench.loop.close()


async def test_a_command_that_never_began_and_was_interrupted_does_not_begin_after_a_restart() -> None:
    bench = Bench()
    bench.model.says("", "shell")
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(bench.turn.calls and bench.turn.calls[0].spawned))
    bench.loop.settle = lambda: None
    await bench.loop.submit(Interrupt())
    again = reopened(bench)
    await recover(again.loop)
    await again.rest()
    assert again.commands.ran == []
    assert [record.data.reason for record in again.log.records if isinstance(record.data, ToolInterrupted)] == [
        "stopped"
    ]
    assert [record.data.reason for record in again.log.records if isinstance(record.data, TurnFinished)] == [
        "interrupted"
    ]
    await bench.loop.close()


async def test_a_wait_that_was_recorded_goes_on_after_a_restart_and_fires_once() -> None:
    bench = Bench()
    bench.model.answers.put_nowait(BrokenStream("cut"))
    await bench.loop.submit(PROMPT)
    await bench.until(lambda state: bool(state.timers))
    op = next(iter(bench.loop.state.timers))
    again = reopened(bench)
    again.log.time = LATER
    await recover(again.loop)
    await again.until(lambda state: not state.timers)
    fired = [record.data for record in again.log.records if record.op == op]
    assert fired == [TimerSet("retry", fired[0].deadline), TimerFired(late=True)]
    attempts = [record.data.attempt for record in again.log.records if isinstance(record.data, StepStarted)]
    assert attempts == [1, 2]
    await again.loop.close()
    await bench.loop.close()
