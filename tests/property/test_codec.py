"""A record and its line say the same, for every type of the table."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pieria.core.events import TABLE
from pieria.core.record import FIRST_PREV, ROW_OF, TAIL_BYTES, BadLine, Draft, chain_hash, decode, encode, type_name
from tests.property.drafts import EVENTS, drafts

TIME = "2026-01-01T00:00:00.000000Z"


def line_of(draft: Draft, *, seq: int = 5, n: int = 3):
    return encode(draft, seq=seq, prev=FIRST_PREV, durable=4, epoch=2, time=TIME, n=n)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_every_event_comes_back_as_it_was_written(row) -> None:
    @settings(max_examples=15)
    @given(event=EVENTS[row.cls])
    def check(event) -> None:
        record, line = line_of(Draft("a0", event, cause=1, basis=2))
        assert decode(line) == record
        assert record.data == event
        assert type_name(record) == row.name
        assert line.count(b"\n") == 1

    check()


@settings(max_examples=100)
@given(draft=drafts(), seq=st.integers(0, 2**40), n=st.integers(0, 2**30))
def test_the_envelope_comes_back_as_it_was_written(draft, seq, n) -> None:
    record, line = line_of(draft, seq=seq, n=n)
    read = decode(line)
    op = f"{draft.agent}.{n}" if ROW_OF[type(draft.event)].opens and draft.op is None else draft.op
    assert (read.seq, read.prev, read.durable, read.epoch, read.time) == (seq, FIRST_PREV, 4, 2, TIME)
    assert (read.agent, read.n, read.op, read.cause, read.basis) == (draft.agent, n, op, draft.cause, draft.basis)
    assert read.hash == record.hash == chain_hash(line[:-TAIL_BYTES])
    assert msgspec.json.decode(line)["hash"] == record.hash


@settings(max_examples=100)
@given(draft=drafts(), place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_before_the_hash_is_found_out(draft, place, bit) -> None:
    _, line = line_of(draft)
    place %= len(line) - TAIL_BYTES
    with pytest.raises(BadLine):
        decode(line[:place] + bytes([line[place] ^ 1 << bit]) + line[place + 1 :])


@settings(max_examples=50)
@given(draft=drafts(), cut=st.integers(1, 10**6))
def test_a_line_cut_anywhere_is_no_record(draft, cut) -> None:
    _, line = line_of(draft)
    with pytest.raises(BadLine):
        decode(line[: cut % len(line)])
