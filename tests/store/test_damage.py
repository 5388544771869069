"""Damage to what was durable: never accepted, never cut, all that is sound stays readable, and the gap is named."""

# ruff: noqa: ASYNC240 - local files and short-lived children, with nothing else on the loop

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from pieria.core.errors import PieriaError
from pieria.core.record import TAIL_BYTES, decode, type_name
from pieria.store.index import list_sessions
from pieria.store.lines import read
from pieria.store.scan import Gap
from pieria.store.show import records
from pieria.store.stats import stats
from pieria.store.verify import verify
from tests.store.scenario import closed, let_go, lines_of, open_all, prompt, resealed, write_session

MIDDLE = 9


def offsets(lines: list[bytes]) -> list[int]:
    return [sum(map(len, lines[:count])) for count in range(len(lines) + 1)]


def check(path: Path, lines: list[bytes], gaps: list[Gap] | None, seqs: list[int]) -> None:
    """Expect these gaps and these readable records, a log that can't be written, and a file as it was."""
    data = b"".join(lines)
    path.write_bytes(data)
    before = set(path.parent.iterdir())
    opening, found = open_all(path)
    assert opening.log is None
    assert opening.torn is None
    assert "damaged" in opening.read_only_reason
    if gaps is not None:
        assert list(opening.gaps) == gaps
    assert [record.seq for record in found] == seqs
    let_go(opening)
    assert not verify(str(path)).ok
    assert (path.read_bytes(), set(path.parent.iterdir())) == (data, before)


async def test_thirty_bytes_cut_out_of_a_record_hide_that_record_alone(tmp_path: Path):
    path = await write_session(tmp_path)
    lines = lines_of(path)
    at = offsets(lines)[MIDDLE]
    lines[MIDDLE] = lines[MIDDLE][:60] + lines[MIDDLE][90:]
    gap = Gap(at, at + len(lines[MIDDLE]), MIDDLE, MIDDLE + 1)
    check(path, lines, [gap], [seq for seq in range(len(lines)) if seq != MIDDLE])


async def test_a_missing_record_is_named_and_order_comes_from_the_sequence(tmp_path: Path):
    path = await write_session(tmp_path)
    lines = lines_of(path)
    at = offsets(lines)[MIDDLE]
    seqs = [seq for seq in range(len(lines)) if seq not in {MIDDLE, MIDDLE + 1}]
    del lines[MIDDLE : MIDDLE + 2]
    check(path, lines, [Gap(at, at, MIDDLE, MIDDLE + 2)], seqs)


async def test_fused_lines_are_split_and_read_but_not_accepted(tmp_path: Path):
    path = await write_session(tmp_path)
    lines = lines_of(path)
    seqs = list(range(len(lines)))
    lines[MIDDLE] = lines[MIDDLE][:-1]
    check(path, lines, None, seqs)
    lines[MIDDLE - 1] = lines[MIDDLE - 1][:-1]
    check(path, lines, None, seqs)
    lines[MIDDLE] = lines[MIDDLE][:70]
    check(path, lines, None, [seq for seq in seqs if seq != MIDDLE])


async def test_a_missing_first_record_leaves_the_rest_readable(tmp_path: Path):
    path = await write_session(tmp_path)
    lines = lines_of(path)
    check(path, lines[1:], [Gap(0, 0, 0, 1)], list(range(1, len(lines))))


async def test_two_damaged_places_and_a_cut_end_are_three_gaps(tmp_path: Path):
    path = await write_session(tmp_path)
    lines = lines_of(path)
    starts = offsets(lines)
    last = len(lines) - 1
    lines[4] = b"?" * (len(lines[4]) - 1) + b"\n"
    lines[8] = b"\0" * len(lines[8])
    lines[last] = lines[last][:-5]
    gaps = [
        Gap(starts[4], starts[5], 4, 5),
        Gap(starts[8], starts[9], 8, 9),
        Gap(starts[last], starts[last + 1] - 5, last, None),
    ]
    check(path, lines, gaps, [seq for seq in range(last) if seq not in {4, 8}])


async def test_contents_around_damage_are_still_found(tmp_path: Path):
    path = await write_session(tmp_path)
    lines = lines_of(path)
    lines[MIDDLE] = lines[MIDDLE][:60] + b"\n"
    path.write_bytes(b"".join(lines))
    opening, found = open_all(path)
    (long,) = [record.data.text for record in found if type_name(record) == "tool.finished" and record.seq > MIDDLE]
    assert opening.texts.text(long) == "long " * 900
    let_go(opening)


MUTATIONS = ["flip", "delete", "swap", "duplicate", "glue", "forge", "renumber", "hash", "insert"]


def mutated(lines: list[bytes], kind: str, place: int, chance: random.Random) -> list[bytes]:
    lines = lines.copy()
    line = bytearray(lines[place])
    match kind:
        case "flip":
            line[chance.randrange(len(line))] ^= 1 << chance.randrange(8)
            lines[place] = bytes(line)
        case "delete":
            del lines[place]
        case "swap":
            lines[place], lines[place + 1] = lines[place + 1], lines[place]
        case "duplicate":
            lines.insert(place, lines[chance.randrange(place + 1)])
        case "glue":
            lines[place] = lines[place][:-1]
        case "forge":
            lines[place] = resealed(lines[place].replace(b'"data":', b'"basis":0,"data":'))
        case "renumber":
            lines[place] = resealed(lines[place].replace(b'"n":', b'"n":1'))
        case "hash":
            lines[place] = lines[place].replace(b',"hash":"', b',"hasi":"')
        case "insert":
            lines.insert(place, b"\0" * chance.randrange(1, 9000) + b"\n")
    return lines


@pytest.mark.parametrize("kind", MUTATIONS)
async def test_no_change_to_what_was_durable_is_accepted(tmp_path: Path, kind: str):
    path = await write_session(tmp_path, turns=1)
    whole = lines_of(path)
    report = verify(str(path))
    assert report.ok
    chance = random.Random(kind)
    durable = len(whole) - 1  # the last record says so of those before it
    for place in range(durable):
        for _ in range(12 if kind == "flip" else 1):
            lines = mutated(whole, kind, place, chance)
            path.write_bytes(b"".join(lines))
            found = verify(str(path))
            assert not found.ok, (kind, place)
            opening, records = open_all(path)
            assert opening.log is None
            sound = {repr(decode(line)) for line in whole}
            assert {repr(record) for record in records} <= sound or kind in {"forge", "renumber"}
            let_go(opening)
            assert path.read_bytes() == b"".join(lines)


def rechained(lines: list[bytes], place: int, **changes: object) -> list[bytes]:
    """Change one record and give all after it hashes that fit."""
    found, prev = lines[:place], ""
    for number, line in enumerate(lines[place:]):
        fields = msgspec.json.decode(line)
        fields |= {"prev": prev} if number else changes
        del fields["hash"]
        found.append(resealed(msgspec.json.encode(fields)[:-1] + b"-" * 44))
        prev = found[-1][-35:-3].decode()
    return found


@pytest.mark.parametrize(
    "change", [{"n": 99}, {"time": "2020-01-01T00:00:00.000000Z"}, {"epoch": 0}, {"durable": 99}, {"durable": -5}]
)
async def test_a_chain_that_fits_does_not_excuse_fields_that_do_not(tmp_path: Path, change: dict[str, object]):
    path = await write_session(tmp_path)
    whole = lines_of(path)
    path.write_bytes(b"".join(rechained(whole, MIDDLE)))
    assert verify(str(path)).ok
    path.write_bytes(b"".join(rechained(whole, MIDDLE, **change)))
    assert not verify(str(path)).ok
    opening, _ = open_all(path)
    assert opening.log is None
    let_go(opening)


@pytest.mark.parametrize("kind", ["flip", "delete", "swap", "duplicate", "glue", "hash"])
async def test_a_change_to_the_unacknowledged_end_costs_the_end_at_most(tmp_path: Path, kind: str):
    path = await write_session(tmp_path, turns=1)
    opening, _ = open_all(path)
    opening.log.append([prompt("never"), prompt("acknowledged"), closed()])
    opening.log.drop()
    whole = lines_of(path)
    chance = random.Random(kind)
    lines = mutated(whole, kind, len(whole) - 2, chance)
    path.write_bytes(b"".join(lines))
    opening, found = open_all(path)
    assert opening.log is not None
    assert opening.torn is not None
    kept = len(found)
    assert kept >= len(whole) - 2
    assert path.read_bytes() + Path(opening.torn.copy).read_bytes() == b"".join(lines)
    opening.log.drop()


@pytest.mark.parametrize("seed", range(60))
async def test_whatever_the_bytes_opening_never_ends_in_a_traceback(tmp_path: Path, seed: int):
    path = await write_session(tmp_path, turns=1)
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 40)):
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randrange(300)]
            case 2:
                data[at:at] = chance.randbytes(chance.randrange(300))
            case _:
                data[at : at + 200] = b"\0" * 200
    path.write_bytes(data)
    verify(str(path))
    try:
        opening, _ = open_all(path)
    except PieriaError:
        assert path.read_bytes() == bytes(data)
        return
    let_go(opening)
    assert bytes(data).startswith(path.read_bytes())


@pytest.mark.parametrize("place", [0, MIDDLE, -1])
@pytest.mark.parametrize("kind", [b"prompt.submitted", b"x.later", b"later"])
async def test_a_record_nested_thousands_deep_is_no_record_and_stops_no_reader(
    tmp_path: Path, place: int, kind: bytes
) -> None:
    path = await write_session(tmp_path)
    lines = lines_of(path)
    deep = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    head = lines[place].partition(b'"type":')[0]
    lines[place] = resealed(head + b'"type":"%b","v":1,"data":%b' % (kind, deep) + b"0" * TAIL_BYTES)
    path.write_bytes(b"".join(lines))
    assert read(lines[place]) is None
    report = verify(str(path))
    assert (report.ok, bool(report.gaps)) == (place == -1, place != -1)
    assert report.records == len(lines) - 1
    assert len(list(records(str(path)))) == len(lines) - 1
    stats(str(path))
    assert [row.id for row in list_sessions(str(tmp_path))] == ["s"]
    (tmp_path / "index.json").write_bytes(deep)
    assert [row.id for row in list_sessions(str(tmp_path))] == ["s"]


async def test_damage_without_a_bad_byte_is_told_without_an_empty_range(tmp_path: Path) -> None:
    path = await write_session(tmp_path)
    whole = lines_of(path)
    at = offsets(whole)

    def told(lines: list[bytes]) -> str:
        path.write_bytes(b"".join(lines))
        opening, _ = open_all(path)
        let_go(opening)
        return opening.read_only_reason

    fused = whole.copy()
    fused[MIDDLE] = fused[MIDDLE][:-1]
    out_of_order = "records don't follow one another as they were written, none missing"
    assert told(fused) == f"the log is damaged: from byte {at[MIDDLE]} on, {out_of_order}"
    assert verify(str(path)).gaps == (Gap(at[MIDDLE], at[MIDDLE], MIDDLE, MIDDLE),)
    renumbered = whole.copy()
    renumbered[MIDDLE] = resealed(renumbered[MIDDLE].replace(b'"n":', b'"n":1'))
    assert out_of_order in told(renumbered)
    lacking = f"the log is damaged: at byte {at[MIDDLE]}, "
    assert told(whole[:MIDDLE] + whole[MIDDLE + 1 :]) == f"{lacking}record {MIDDLE} missing"
    assert told(whole[:MIDDLE] + whole[MIDDLE + 2 :]) == f"{lacking}records {MIDDLE} to {MIDDLE + 1} missing"
