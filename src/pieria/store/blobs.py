"""Gives back what was stowed: contents of blob records, looked up by seq and checked against their sha256."""

from __future__ import annotations

import os
from array import array
from base64 import b64decode
from hashlib import sha256

from pieria.core.errors import LogCorrupt
from pieria.core.events.session import BlobStored
from pieria.core.record import BadLine, decode
from pieria.core.values import Blob, Text
from pieria.store.chain import LINE_BYTES, NOWHERE
from pieria.store.stow import to_bytes

CACHE_BYTES = 4_000_000


class LogTexts:
    """Texts of one log file, by the offsets that its reader or writer keeps. Fits `core.ports.Texts`.

    Contents that were used lately stay in memory, up to CACHE_BYTES of them.
    """

    def __init__(self, fd: int, path: str, *, offsets: array[int]) -> None:
        self.fd = fd
        self.path = path
        self._offsets = offsets
        self._cache: dict[str, bytes] = {}
        self._cached_bytes = 0

    def text(self, ref: Text) -> str:
        """Return the text; bytes that are not UTF-8 come as escaped surrogates."""
        return ref if isinstance(ref, str) else self.data(ref).decode("utf-8", "surrogateescape")

    def data(self, ref: Text) -> bytes:
        """Return the bytes. Raises LogCorrupt when the log does not hold them as promised."""
        if isinstance(ref, str):
            return to_bytes(ref)
        found = self._cache.pop(ref.sha256, None)
        if found is None:
            found = self._read(ref)
            self._cached_bytes += len(found)
        self._cache[ref.sha256] = found
        while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
            oldest = next(iter(self._cache))
            self._cached_bytes -= len(self._cache.pop(oldest, b""))
        return found

    def _read(self, ref: Blob) -> bytes:
        found = []
        part, parts = 0, 1
        while part < parts:
            stored = self._stored(ref.seq + part)
            if stored.part != part or stored.sha256 != ref.sha256:
                raise self._missing(ref.seq + part)
            parts = stored.parts
            found.append(b64decode(stored.base64) if stored.base64 else stored.text.encode())
            part += 1
        data = b"".join(found)
        if len(data) != ref.len or sha256(data).hexdigest() != ref.sha256:
            raise self._missing(ref.seq)
        return data

    def _stored(self, seq: int) -> BlobStored:
        offsets = self._offsets
        if not 0 <= seq < len(offsets) or offsets[seq] == NOWHERE:
            raise self._missing(seq)
        start = offsets[seq]
        end = offsets[seq + 1] if seq + 1 < len(offsets) else NOWHERE
        line = os.pread(self.fd, min(end - start, LINE_BYTES), start)
        try:
            stored = decode(line[: line.find(b"\n") + 1]).data
        except (BadLine, RecursionError) as problem:
            raise self._missing(seq) from problem
        if not isinstance(stored, BlobStored):
            raise self._missing(seq)
        return stored

    def _missing(self, seq: int) -> LogCorrupt:
        return LogCorrupt(
            f"Record {seq} of the log does not hold the content that others cite: {self.path}",
            "verify the log: pieria log verify",
        )
