"""URLs of model servers: the few forms that make sense here, parsed without the cost of urllib."""

from __future__ import annotations

import msgspec


class Url(msgspec.Struct, frozen=True, gc=False):
    """An http or https URL in parts; `target` is path and query."""

    secure: bool
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def without_login(text: str) -> str:
    """Return what was given as a URL without anything that may be a user name or password, parsable or not."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        scheme, rest = "", text
    _, login, place = rest.rpartition("@")
    return f"{scheme}{mark}…@{place}" if login else text


def parse_url(text: str) -> Url:
    """Parse an absolute URL. Raises ValueError with words for a person."""
    scheme, mark, rest = text.partition("://")
    if scheme.lower() not in {"http", "https"} or not mark:
        raise ValueError("the URL must begin with https:// or http://")
    if not rest.isascii() or not rest.isprintable() or " " in rest:
        raise ValueError("the URL may hold only plain ASCII characters; write other hosts as xn--…")
    rest = rest.partition("#")[0]
    cut = min((place for mark in "/?" if (place := rest.find(mark)) >= 0), default=len(rest))
    authority, target = rest[:cut], rest[cut:]
    if "@" in authority:
        raise ValueError("the URL must not hold a user name or password")
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        valid = bool(bracket) and port[:1] in {"", ":"}
        port = port[1:]
    else:
        host, _, port = authority.partition(":")
        valid = True
    secure = scheme.lower() == "https"
    if not valid or not host or (port and not (port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError("the URL has no proper host and port")
    return Url(
        secure,
        host,
        int(port) if port else (443 if secure else 80),
        target if target[:1] == "/" else f"/{target}",
    )
