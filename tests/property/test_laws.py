"""The laws of the core, in worlds where anything may happen in any order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pieria.core.fold import fold
from pieria.core.record import FIRST_PREV, encode
from pieria.core.state import State
from tests.property.drafts import drafts
from tests.property.world import START, Dice, World


@settings(max_examples=250)
@given(agents=st.integers(1, 4), rolls=st.binary(max_size=60))
def test_in_short_stories_every_turn_ends_and_every_law_holds(agents, rolls) -> None:
    World(Dice(rolls), agents).play()


@settings(max_examples=600)
@given(agents=st.integers(1, 4), rolls=st.binary(min_size=150, max_size=900))
def test_in_long_stories_every_turn_ends_and_every_law_holds(agents, rolls) -> None:
    World(Dice(rolls), agents).play()


@settings(max_examples=60)
@given(rolls=st.binary(min_size=40, max_size=300), chance=st.randoms(use_true_random=False), agents=st.integers(1, 3))
def test_fold_never_raises_whatever_is_lost_doubled_or_out_of_order(rolls, chance, agents) -> None:
    world = World(Dice(rolls), agents)
    world.play()
    records = world.records + chance.sample(world.records, len(world.records) // 2)
    chance.shuffle(records)
    state = State()
    for record in records:
        state = fold(state, record)
    assert (state.seq, state.time) == (records[-1].seq, records[-1].time)


@settings(max_examples=60)
@given(strangers=st.lists(drafts(), max_size=40), rolls=st.binary(max_size=60), place=st.integers(0, 10**6))
def test_fold_never_raises_on_records_that_fit_nothing(strangers, rolls, place) -> None:
    world = World(Dice(rolls), 2)
    world.play()
    state = State()
    middle = place % len(world.records)
    for record in world.records[:middle]:
        state = fold(state, record)
    for seq, draft in enumerate(strangers, start=middle):
        record, _ = encode(draft, seq=seq, prev=FIRST_PREV, durable=0, epoch=1, time=START, n=seq)
        state = fold(state, record)
    for record in world.records[middle:]:
        state = fold(state, record)
