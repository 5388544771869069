"""Asked a session without a terminal to its end: compose it from flags, environment and config, drive it, report."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
from argparse import Namespace
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pieria.app import binding, facts
from pieria.app.session import Front, Session, Setup, begin, go_on
from pieria.config.dirs import home_dirs
from pieria.config.load import Config, api_key, resolve
from pieria.config.secrets import dotenv_secrets, environment_secrets
from pieria.core import clock
from pieria.core.commands import AnswerApproval, GoOn, Interrupt, SubmitPrompt
from pieria.core.errors import UsageError
from pieria.core.events.session import SettingsApplied
from pieria.core.state import State
from pieria.core.values import AgentId, OpId, Sampling
from pieria.core.view import Outcome, answer, outcome, questions
from pieria.headless.printing import JsonPrinter, LinePrinter, progress_line
from pieria.headless.streams import Stream
from pieria.headless.words import plain, question_lines
from pieria.store.paths import find_session, sessions_dir
from pieria.workspace.keys import take_keys

if TYPE_CHECKING:
    from pieria.store.index import SessionRow

RESERVE_AFTER_S = 0.25
"""Blocks for a full disk's day are set aside once the first request is out."""

LOOK_S = 0.5
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Asked(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    prompt: str | None = None
    session: str | None = None
    latest: bool = False
    cwd: str = ""
    flags: dict[str, object] = {}
    approve: tuple[str, ...] = ()
    refuse: tuple[str, ...] = ()
    json: bool = False
    progress: bool = False
    quiet: bool = False

    @staticmethod
    def of(given: Namespace, *, prompt: str | None, session: str | None, latest: bool) -> Asked:
        """From parsed arguments."""
        flags: dict[str, object] = dict(  # noqa: C408  (reads like the flags it is made of)
            model=given.model, base_url=given.base_url, mode=given.mode, allow=tuple(given.allow),
            deny=tuple(given.deny), trust=given.trust, max_steps=given.max_steps, max_tokens=given.max_tokens,
            timeout_s=given.timeout,
        )  # fmt: skip
        return Asked(
            prompt, session, latest, given.cwd or "", flags, tuple(given.approve), tuple(given.deny_id),
            given.json, given.progress, given.quiet,
        )  # fmt: skip


class Place(msgspec.Struct, frozen=True):
    """Where and with what a run works. `keys` names the variables that were taken out of the environment."""

    cwd: str
    config: Config
    key: str
    keys: tuple[str, ...]
    secrets: dict[str, str]
    quiet: bool = False


def drive(asked: Asked) -> int:
    """Drive a session to its end and return the exit code."""
    cwd = _folder(asked.cwd)
    keys = take_keys(os.environ)
    environ = {**os.environ, **keys}
    config = resolve(asked.flags, environ, cwd)
    for notice in () if asked.quiet else config.notices:
        _say(notice)
    key = api_key(config, environ)
    known = {**environment_secrets(environ), **keys, **({config.api_key_env: key} if key else {})}
    for name, value in (dotenv_secrets(config.root) if config.trusted else {}).items():
        known[name if known.get(name, value) == value else f"{name}.dotenv"] = value
    place = Place(cwd, config, key=key, keys=tuple(keys), secrets=known, quiet=asked.quiet)
    return asyncio.run(_drive(asked, place))


async def _drive(asked: Asked, place: Place) -> int:
    out = _Out(asked)
    session = await _open(asked, place, out)
    stops = _listen(session, out.answer)
    try:
        if asked.prompt is not None:
            await session.submit(SubmitPrompt(_first_agent(session), session.mask(asked.prompt)))
        else:
            await _take_up(session)
        asyncio.get_running_loop().call_later(RESERVE_AFTER_S, session.log.reserve)
        if not await _rest(session, stops, place.config.timeout_s):
            return out.leave(session.id, stops)
    except UsageError:
        await session.close(Outcome("failed", 2, "the command line was rejected"))
        raise
    stops.heeded = False
    ended = outcome(session.loop.state)
    if stops.found:
        ended = Outcome("interrupted", *stops.found[0])
    texts = session.log.texts
    words = texts.text(answer(session.loop.state))
    asks = [line for question in questions(session.loop.state) for line in question_lines(question, texts)]
    await session.close(ended)
    return out.finish(session.id, ended, words, asks)


async def _open(asked: Asked, place: Place, out: _Out) -> Session:
    folder = sessions_dir(os.environ)
    if asked.session is None and not asked.latest:
        if asked.approve or asked.refuse:
            raise UsageError("a new session has no open question", "name its session: --session ID or --continue")
        return begin(_new(place, folder), out.front)
    if asked.session is not None:
        path = find_session(folder, asked.session)
    elif (row := _latest(folder, place.cwd)) is not None:
        path = row.path
    else:
        raise UsageError("there is no session of this folder yet", "pieria exec 'what to do' starts one")

    def setup(state: State) -> Setup:
        out.remember(state)
        return _again(asked, place, state)

    return await go_on(path, setup, out.front)


def _latest(folder: str, cwd: str) -> SessionRow | None:
    """The list of sessions is read, and its code imported, only when it is asked for."""
    from pieria.store.index import latest_session

    return latest_session(folder, cwd)


def _new(place: Place, folder: str) -> Setup:
    config = place.config
    if not config.model:
        raise UsageError(
            "no model is configured",
            "--model NAME --base-url URL, or PIERIA_MODEL and PIERIA_BASE_URL (and PIERIA_API_KEY if it wants a key); "
            "'pieria demo' needs neither",
        )
    protocol, name = binding.split_model(config.model)
    endpoint = f"scripted:{os.path.abspath(name)}" if protocol == "scripted" else config.base_url
    if not endpoint:
        raise UsageError("the model has no base URL", "--base-url http://HOST/v1, or PIERIA_BASE_URL")
    settings = SettingsApplied(mode=config.mode, allow=config.allow, deny=config.deny, add_dirs=_open_folders(place))
    return _setup(place, config.model, endpoint, settings=settings, folder=folder)


def _open_folders(place: Place) -> tuple[str, ...]:
    """Folders beside the working folder: those asked for, and the repository that it is in."""
    root = place.config.root
    return place.config.add_dirs if root in ("", place.cwd) else (root, *place.config.add_dirs)


def _again(asked: Asked, place: Place, state: State) -> Setup:
    """A session keeps its model, its mode and its rules: only flags of this run change what agents may do.

    Where the model is served may change. Deny rules of today's config count too.
    """
    agent = next(iter(state.agents.values()), None)
    if agent is None:
        raise UsageError("the session has no agent: it ended before it began", "start a new one: pieria exec 'PROMPT'")
    recorded, given = agent.added, asked.flags.get("model")
    if given is not None and binding.split_model(str(given)) != (recorded.protocol, recorded.model):
        raise UsageError(
            f"the session's model is {recorded.protocol}:{recorded.model}, not {given}",
            "leave --model out to go on, or start a new session",
        )
    endpoint = state.settings.endpoint
    if recorded.protocol != "scripted" and place.config.base_url:
        endpoint = place.config.base_url
    before, flags = state.settings, asked.flags
    settings = SettingsApplied(
        mode=str(flags.get("mode") or before.mode),
        allow=_joined(before.allow, flags.get("allow")),
        deny=_joined(before.deny, place.config.deny),
        add_dirs=before.add_dirs,
    )
    answers = [AnswerApproval(OpId(id), "allow") for id in asked.approve]
    answers += [AnswerApproval(OpId(id), "deny") for id in asked.refuse]
    ids = [answer.id for answer in answers]
    if twice := [id for id in ids if ids.count(id) > 1]:
        raise UsageError(f"the question '{twice[0]}' is answered twice", "answer it once")
    setup = _setup(place, f"{recorded.protocol}:{recorded.model}", endpoint, settings=settings)
    return replace(setup, answers=tuple(answers))


def _joined(before: tuple[str, ...], more: object) -> tuple[str, ...]:
    added = more if isinstance(more, tuple) else ()
    return tuple(dict.fromkeys((*before, *added)))


def _setup(place: Place, model: str, endpoint: str, *, settings: SettingsApplied, folder: str = "") -> Setup:
    config = place.config
    deadline = clock.later(binding.now(), config.timeout_s) if config.timeout_s else ""
    settings = replace(
        settings, trusted=config.trusted, endpoint=endpoint, max_steps=config.max_steps, max_tokens=config.max_tokens,
        deadline=deadline,
    )  # fmt: skip
    if settings.mode == "full" and not place.quiet:
        _say("mode full: commands run with your rights, without a sandbox")
    dirs = home_dirs(os.environ)
    return Setup(
        cwd=place.cwd, root=place.cwd, model=model, endpoint=endpoint,
        settings=settings, sampling=Sampling(config.temperature, None, config.effort),
        max_output=config.max_output_tokens, secrets=place.secrets, sessions=folder,
        own_folders=(dirs.config, dirs.state), environ=dict(os.environ),
        keys=place.keys,
        own_keys=tuple(name for name, value in place.secrets.items() if value == place.key),
        port=binding.make_model(binding.split_model(model)[0], endpoint=endpoint, key=place.key),
    )  # fmt: skip


def _first_agent(session: Session) -> AgentId:
    return next(iter(session.loop.state.agents))


async def _take_up(session: Session) -> None:
    """Without a new prompt, agents whose last turn ended badly try again: once what was asked to stop has ended."""
    if any(agent.stop is not None for agent in session.loop.state.agents.values()):
        await session.loop.rest()
    for id, agent in list(session.loop.state.agents.items()):
        if agent.turn is None and not agent.unread and agent.last_end not in ("", "done"):
            await session.submit(GoOn(id))


class _Stops(msgspec.Struct):
    """Exit codes and reasons why the run was asked to stop. `heeded`: there is still something to interrupt."""

    found: list[tuple[int, str]] = []
    heeded: bool = True


def _listen(session: Session, answers: Stream) -> _Stops:
    """A first signal interrupts what runs, as does a reader who left; a second signal ends the process at once."""
    stops = _Stops()
    loop = asyncio.get_running_loop()

    def stop(code: int, name: str, why: str) -> None:
        if not stops.heeded:
            return
        stops.found.append((code, why))
        interrupt = loop.create_task(session.loop.submit(Interrupt(reason=name)))
        interrupt.add_done_callback(lambda done: done.cancelled() or done.exception())

    def signalled(number: signal.Signals) -> None:
        if any(code in SIGNALS.values() for code, _ in stops.found):
            os._exit(SIGNALS[number])  # the log can take it
        stop(SIGNALS[number], number.name, "a signal asked to stop")

    answers.on_broken = lambda: stop(141, "SIGPIPE", "nobody reads the output any more")
    for number in SIGNALS:
        loop.add_signal_handler(number, signalled, number)
    return stops


async def _rest(session: Session, stops: _Stops, limit_s: float | None) -> bool:
    """Wait until all is done. False: the log can't be written, and this run was asked to stop or has no time left."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + limit_s if limit_s else math.inf
    rest = loop.create_task(session.loop.rest())
    while not rest.done():
        await asyncio.wait({rest}, timeout=LOOK_S)
        if session.loop.writer.is_paused and (stops.found or loop.time() > ends):
            rest.cancel()
            session.loop.writer.stop()
            return False
    await rest
    return True


def _folder(given: str) -> str:
    try:
        folder = os.path.realpath(given or os.getcwd())
    except FileNotFoundError:
        raise UsageError("the current folder is gone", "cd into a folder that exists") from None
    if not os.path.isdir(folder):
        raise UsageError(f"there is no folder {given}", "--cwd names an existing folder")
    if facts.shown(folder) != folder:
        raise UsageError(
            f"the name of the working folder is no UTF-8: {facts.shown(folder)}",
            "rename it, or work from a folder above",
        )
    return folder


@cache
def _say_once(words: str) -> None:
    """Say what would otherwise be said at each try."""
    _say(words)


def _say(words: str) -> None:
    Stream(sys.stderr).write(f"{words}\n")


class _Out:
    """Where words and records go. `answer`: standard output."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self.answer = Stream(sys.stdout)
        printer: JsonPrinter | LinePrinter | None = None
        self._lines: LinePrinter | None = None
        if asked.json:
            printer = JsonPrinter(self.answer.write)
        elif not asked.quiet:
            printer = self._lines = LinePrinter(Stream(sys.stderr).write)
        self.front = Front(
            record=printer.record if printer else _ignore,
            durable=printer.durable if printer else _ignore,
            progress=self._progress,
            notice=_say_once,
        )

    def remember(self, state: State) -> None:
        """Name the calls that were open when this process took the session up."""
        if self._lines is not None:
            turns = [agent.turn for agent in state.agents.values() if agent.turn]
            self._lines.remember(entry.call for turn in turns for entry in turn.calls)

    def _progress(self, agent: AgentId, text: str) -> None:
        if self._asked.json and self._asked.progress:
            self.answer.write(progress_line(agent, text))

    def leave(self, session: str, stops: _Stops) -> int:
        """Say that it ended with its log as it is: what could not be recorded did not begin, or is taken up later."""
        code, why = stops.found[0] if stops.found else (4, "the time limit was reached")
        _say(f"pieria: ended while the log can't be written: {why}")
        _say(f"hint: 'pieria resume {session}' goes on once it can be")
        return code

    def finish(self, session: str, ended: Outcome, words: str, asks: list[str]) -> int:
        """Say how it ended: the answer to stdout, everything else to stderr."""
        if not self._asked.json and words.strip() and ended.status == "finished":
            self.answer.write((plain(words) if self.answer.is_terminal else words).rstrip() + "\n")
        for line in asks:
            _say(line)
        if self.answer.problem is not None:
            raise self.answer.problem
        if asks:
            first = asks[0].split(" ", 2)[1].rstrip(":")
            _say(f"hint: pieria resume {session} --approve {first}   (or --deny-id {first}, or --allow RULE)")
        elif ended.exit_code:
            _say(f"pieria: {ended.status}{': ' + ended.reason if ended.reason else ''}")
            _say(f"hint: 'pieria resume {session}' goes on; 'pieria log show {session}' tells what happened")
        return ended.exit_code


def _ignore(_: object) -> None:
    return None
