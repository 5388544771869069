"""Open a session, new or old: its log, its state, its loop. The one path for exec, resume and the demo."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from pieria import __version__
from pieria.app import binding, facts, lead
from pieria.config import place
from pieria.config.secrets import KnownSecrets
from pieria.core.commands import AnswerApproval, Command, Rejected, accept
from pieria.core.errors import LogCorrupt, PieriaError, UsageError
from pieria.core.events.model import StepStarted
from pieria.core.events.session import (
    FORMAT,
    MAGIC,
    AgentAdded,
    Instruction,
    ProjectObserved,
    SessionClosed,
    SessionCreated,
    SessionOpened,
    SettingsApplied,
)
from pieria.core.fold import fold
from pieria.core.ports import Model, Progress
from pieria.core.record import Draft, Record
from pieria.core.state import State
from pieria.core.values import SESSION, Sampling
from pieria.core.view import Outcome
from pieria.runtime.loop import Loop
from pieria.runtime.requests import RECIPE, Bodies
from pieria.runtime.world import World
from pieria.store.create import create
from pieria.store.disk import Disk
from pieria.store.log import Log
from pieria.store.paths import new_session_id, session_folder
from pieria.tools.arguments import nearest, parse
from pieria.workspace.files import DiskFiles
from pieria.workspace.keys import wipe
from pieria.workspace.living import boot_id, look
from pieria.workspace.processes import Commands

if TYPE_CHECKING:
    from pieria.store.open import Opened

REDUCER = 1


class Front(msgspec.Struct):
    """What a front end wants to hear."""

    record: Callable[[Record], None]
    durable: Callable[[int], None]
    progress: Progress
    notice: Callable[[str], None]


class Setup(msgspec.Struct, frozen=True):
    """Everything that a session is started with, already resolved.

    `answers` are the person's to open questions, recorded before the settings of this run. `keys` names the secrets
    that were taken out of the environment, `own_keys` those that no call may use. `port`: the model's adapter, if made.
    """

    cwd: str
    root: str
    model: str
    endpoint: str
    settings: SettingsApplied
    sampling: Sampling = Sampling()
    max_output: int | None = None
    secrets: dict[str, str] = {}
    sessions: str = ""
    own_folders: tuple[str, ...] = ()
    environ: dict[str, str] = {}
    keys: tuple[str, ...] = ()
    own_keys: tuple[str, ...] = ()
    answers: tuple[AnswerApproval, ...] = ()
    port: Model | None = None


class Session(msgspec.Struct):
    """An open session at work. `close` ends it cleanly; a process that dies instead loses nothing acknowledged."""

    id: str
    log: Log
    loop: Loop
    front: Front
    mask: Callable[[str], str]

    async def submit(self, command: Command) -> Record:
        """Submit a command; raises UsageError when core rejects it."""
        done = await self.loop.submit(command)
        if isinstance(done, Rejected):
            raise UsageError(done.reason, done.hint)
        return done

    async def close(self, outcome: Outcome) -> None:
        """Record the outcome, make everything durable and let go."""
        closed = SessionClosed(outcome.status, outcome.exit_code, outcome.reason)
        try:
            self.loop.writer.configure([Draft(SESSION, closed)])
        except PieriaError as problem:
            self.front.notice(f"{problem}")
        try:
            await self.log.synced(self.loop.state.seq)
            await self.loop.close()
            await self.log.close()
        except PieriaError as problem:
            self.front.notice(f"{problem}")


def real_world(id: str, log: Log, setup: Setup) -> World:
    """Bind a session's ports to this machine."""
    files = DiskFiles(own_folders=setup.own_folders)
    secrets = KnownSecrets(setup.secrets, own=setup.own_keys)
    commands = Commands(os.path.join(session_folder(log.path), "jobs"), id, base=setup.environ)

    async def mend() -> None:
        if log.frozen is not None:
            await log.rescue()

    @cache
    def forget_keys() -> None:
        wipe(setup.keys)

    return World(
        log=log,
        mend=mend,
        texts=log.texts,
        files=files,
        processes=commands,
        before_command=forget_keys,
        stand_by=commands.stand_by,
        let_go=commands.close,
        secrets=secrets,
        begun_secret=secrets.begun,
        own_keys=frozenset(setup.own_keys),
        encoders=binding.ENCODERS,
        model=lambda added: setup.port or binding.make_model(added.protocol, endpoint=setup.endpoint, key=""),
        tools=binding.agent_tools(files),
        parse=parse,
        nearest=lambda name, names: nearest(name, names) or "",
        now=binding.now,
        add_dirs=setup.settings.add_dirs,
    )


class Ground(msgspec.Struct, frozen=True):
    """What a session stands on: this machine, unless a test of crashes brings a world that it can stop and restore."""

    world: Callable[[str, Log, Setup], World] = real_world
    disk: Disk | None = None
    clock: Callable[[], int] = time.time_ns


def begin(setup: Setup, front: Front, *, ground: Ground | None = None) -> Session:
    """Create a session; its first records are written when this returns, and durable with the first barrier."""
    ground = ground or Ground()
    id = new_session_id(time.time_ns(), os.urandom(3))
    head = place.head(setup.root)
    created = SessionCreated(
        MAGIC, FORMAT, id, int.from_bytes(os.urandom(4), "big"), __version__, REDUCER, RECIPE,
        facts.system_name(), boot_id(), facts.shown(setup.cwd), repository_identity(setup.root),
    )  # fmt: skip
    log, record = create(setup.sessions, created, clock=ground.clock, disk=ground.disk)
    front.record(record)
    state = fold(State(), record)
    session = _session(log, state, Bodies(log.texts), front, world=ground.world(id, log, setup))
    session.loop.writer.configure([_opened(0, None), *_roster(id, setup, head, session.mask)])
    return session


async def go_on(path: str, setup: Callable[[State], Setup], front: Front, *, ground: Ground | None = None) -> Session:
    """Open an existing session, take up what a dead process left, and let agents go on.

    Raises SessionBusy, LogCorrupt, UsageError (its folder is gone) or PieriaError (it can only be read).
    """
    from pieria.runtime.recovery import recover
    from pieria.store.open import open_log

    ground = ground or Ground()
    state = State()
    requests: list[tuple[str, StepStarted]] = []

    def take(record: Record) -> None:
        nonlocal state
        state = fold(state, record)
        if isinstance(record.data, StepStarted):
            requests.append((record.agent, record.data))

    opened = open_log(path, clock=ground.clock, take=take, disk=ground.disk)
    log = _writable(opened, path)
    assert state.session is not None
    with ExitStack() as undo:
        undo.callback(log.drop)
        resolved = setup(state)
        moved = _moved(state, resolved)
        answers = [_answered(state, answer) for answer in resolved.answers]
        undo.pop_all()
    bodies = Bodies(log.texts)
    for agent, data in requests:
        bodies.note(agent, data.request)
    session = _session(log, state, bodies, front, world=ground.world(state.session.session, log, resolved))
    torn = opened.torn
    if torn is not None:
        front.notice(f"{torn.bytes} bytes of a record that never became durable were set aside in {torn.copy}")
    if opened.warning:
        front.notice(opened.warning)
    birth = _opened(opened.unclean_ends, opened, moved=moved)
    session.loop.writer.configure([birth, *answers, Draft(SESSION, resolved.settings)])
    await recover(session.loop)
    return session


def _answered(state: State, answer: AnswerApproval) -> Draft:
    """The fact that an answer becomes. Raises UsageError before anything is recorded."""
    draft = accept(state, answer)
    if isinstance(draft, Rejected):
        raise UsageError(draft.reason, draft.hint)
    return draft


def _writable(opened: Opened, path: str) -> Log:
    if opened.log is None:
        kind = LogCorrupt if opened.gaps or opened.unknown else PieriaError
        raise kind(
            f"the session can only be read: {opened.read_only_reason}", f"pieria log show {path} shows what is sound"
        )
    return opened.log


def _moved(state: State, setup: Setup) -> str:
    """The new root when the project's folder was renamed or moved. Raises UsageError when it is gone."""
    agent = next(iter(state.agents.values()), None)
    if agent is None or agent.added.root == setup.root or os.path.isdir(agent.added.root):
        return ""
    assert state.session is not None
    if state.session.repository and state.session.repository == repository_identity(setup.root):
        return setup.root
    raise UsageError(
        f"the session's folder is gone: {facts.shown(agent.added.root)}",
        "if it was moved, run this from its new place; 'pieria log show' reads the session anyway",
    )


def repository_identity(root: str) -> str:
    """What stays the same when a repository is renamed or moved on its disk: device and inode of its git folder."""
    try:
        status = os.stat(f"{root}/.git")
    except OSError:
        try:
            status = os.stat(root)
        except OSError:
            return ""
    return f"{status.st_dev:x}:{status.st_ino:x}"


def _opened(unclean: int, opened: Opened | None, *, moved: str = "") -> Draft:
    mine = look(os.getpid())
    event = SessionOpened(
        os.getpid(), mine.start_time if mine else 0, boot_id(), __version__, unclean,
        opened.torn if opened else None, moved,
    )  # fmt: skip
    return Draft(SESSION, event)


def _roster(id: str, setup: Setup, head: place.Head, mask: Callable[[str], str]) -> list[Draft]:
    protocol, name = binding.split_model(setup.model)
    found = place.instructions(place.repository_root(setup.cwd) or setup.cwd, setup.cwd)
    told = facts.facts(
        root=setup.root, branch=head.branch, head=head.commit, today=binding.now()[:10], settings=setup.settings
    )
    notes = "".join(f"\n{note}" for note in found.notes)
    files = tuple(Instruction(file.path, mask(str(file.text))) for file in found.files)
    observed = ProjectObserved(setup.root, mask(told + notes), files, head.commit, head.branch)
    added = AgentAdded(
        lead.LEAD, "lead", protocol, name, lead.PROMPT, binding.tool_specs(), setup.root,
        setup.sampling, binding.cache_key(setup.endpoint, id), setup.max_output,
    )  # fmt: skip
    return [Draft(SESSION, event) for event in (setup.settings, observed, added)]


def _session(log: Log, state: State, bodies: Bodies, front: Front, *, world: World) -> Session:
    assert state.session is not None
    log.on_durable(front.durable)
    loop = Loop(
        world, state, bodies, on_record=front.record, on_progress=front.progress,
        on_pause=lambda problem: front.notice(f"{problem}" + (f"\nhint: {problem.hint}" if problem.hint else "")),
    )  # fmt: skip
    log.on_own(loop.writer.take)
    log.on_durable(loop.tidy)
    return Session(state.session.session, log, loop, front, world.secrets.mask)
