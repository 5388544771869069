"""A fixed sample of the crash campaign: `./dev crash` tries far more."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pieria.core.events import TABLE
from tests.crash import tamper
from tests.crash.campaign import Campaign, Proof, play
from tests.crash.judge import Differs
from tests.crash.life import FastLoop
from tests.crash.medium import Medium, mixed
from tests.crash.plans import everything, make_plan

MEMORY = "/dev/shm"
MOST = 12
SEEDS = (11, 16)
"""Three agents at once, one of them with a time in which a file changes."""


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder in memory where there is one: what is synced is counted, not waited for."""
    place = tempfile.mkdtemp(prefix="pieria-crash-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
    yield Path(os.path.realpath(place))
    shutil.rmtree(place)


@pytest.fixture
def loop() -> Iterator[FastLoop]:
    made = FastLoop()
    yield made
    made.close()


def proved(root: Path, *plans, only: str = "", most: int = MOST) -> Campaign:
    campaign = Campaign(str(root / "m"), only=only)
    for plan in plans:
        campaign.prove(plan, seconds=1e9, most=most)
    campaign.close()
    return campaign


def failures(campaign: Campaign) -> list[str]:
    return [words for tally in campaign.tallies.values() for words in tally.failures]


def test_every_type_of_event_is_cut_at_and_every_cut_session_comes_to_the_same_end(root: Path) -> None:
    campaign = proved(root, everything(), only="P1", most=len(TABLE) + MOST)
    assert failures(campaign) == []
    assert campaign.missing() == []
    assert campaign.tallies["P1"].passed == len(TABLE) + MOST


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_sessions_of_several_agents_hold_every_proof(root: Path, seed: int) -> None:
    campaign = proved(root, make_plan(seed))
    assert failures(campaign) == []
    assert {name: tally.passed for name, tally in campaign.tallies.items()} == dict.fromkeys(campaign.tallies, MOST)


@pytest.mark.parametrize("proof", ["P2", "P3"])
def test_crashes_in_recovery_and_lost_writes_leave_the_same_end(root: Path, proof: str) -> None:
    campaign = proved(root, everything(), only=proof, most=25)
    assert failures(campaign) == []
    assert campaign.tallies[proof].passed == 25


def test_no_changed_log_is_taken_for_what_was_written(root: Path, loop: FastLoop) -> None:
    played = play(make_plan(2), str(root / "m"), loop)
    proof = Proof(played, str(root / "m"), loop)
    for kind in tamper.KINDS:
        for _ in range(8):
            proof.tampered(kind)


def test_every_byte_of_a_session_is_opened_as_a_torn_tail(root: Path, loop: FastLoop) -> None:
    played = play(make_plan(5, members=1, kinds=[["todo"]]), str(root / "m"), loop)
    proof = Proof(played, str(root / "m"), loop)
    ends = [spot for spot in proof.inside if spot.cut > len(played.log) - 3000]
    assert len(ends) > 2900
    for spot in ends:
        proof.opened(spot)


def test_a_type_that_no_session_writes_is_named(root: Path) -> None:
    campaign = proved(root, make_plan(5, members=1, kinds=[["todo"]]), only="P1", most=0)
    assert "files.changed" in campaign.missing()
    assert "step.finished" not in campaign.missing()


def test_a_command_that_is_begun_twice_is_seen(root: Path, loop: FastLoop) -> None:
    played = play(make_plan(5, members=1, kinds=[["shell"]], mode="full"), str(root / "m"), loop)
    proof = Proof(played, str(root / "m"), loop)
    spot = next(spot for spot in proof.steps if played.moments[spot.at].step.startswith("command "))
    moment = played.moments[spot.at]
    ran = dict.fromkeys(moment.kernel.ran, 2)
    with pytest.raises(Differs, match="more than once"):
        proof.killed_with(spot, ran=ran)


def test_the_medium_gives_back_only_what_a_power_cut_can_leave(root: Path) -> None:
    dice = random.Random(1)
    (root / "old").write_bytes(b"a" * 9000)
    medium = Medium(str(root))
    (root / "old").write_bytes(b"b" * 5000)
    medium.look()
    (root / "old").rename(root / "new")
    medium.look()
    (root / "fresh").write_bytes(b"c" * 10)
    medium.look()
    seen = set()
    for _ in range(300):
        files = medium.kept().after_power_cut(dice).files()
        names = {path.rsplit("/", 1)[1] for path in files}
        assert names in ({"old"}, {"new"}, {"new", "fresh"})
        for path, (_, data) in files.items():
            if path.endswith("fresh"):
                assert len(data) <= 10
                assert set(data) <= {0, ord("c")}
            else:
                assert len(data) in (5000, 9000)
                assert set(data) <= set(b"ab")
        seen.add(tuple(sorted(names)))
    assert len(seen) == 3
    medium.sync_folder(str(root))
    for number in medium.now.nodes:
        medium.sync_file(number)
    assert medium.kept().after_power_cut(dice).files() == medium.now.files()


def test_a_file_that_grew_in_place_holds_old_or_new_blocks_and_zeros_in_between() -> None:
    dice = random.Random(2)
    found = {mixed(dice, b"a" * 4096, b"b" * 9000) for _ in range(200)}
    assert b"a" * 4096 + bytes(9000 - 4096) in found
    assert all(set(data) <= {0, ord("a"), ord("b")} and len(data) in (4096, 9000) for data in found)
