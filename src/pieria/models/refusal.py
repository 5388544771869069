"""Turns a provider's error into a Failure: which kind it is, and what it said. Pure; the words never hold the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from pieria.core.ports import Failure
from pieria.models.exchange import retry_after_s
from pieria.models.text import excerpt
from pieria.models.url import without_login

TOO_LONG = (
    "context length", "context_length", "context window", "context size", "context_size", "maximum context",
    "max_model_len", "prompt is too long", "input is too long", "prompt too long", "input too long",
    "too many tokens", "too many input tokens", "maximum number of tokens", "maximum prompt length",
    "reduce the length", "string too long", "string_above_max_length", "exceeds the context",
)  # fmt: skip
"""How servers say that a request does not fit; compared in lower case."""

NO_CREDIT = ("insufficient_quota", "insufficient_balance", "billing_hard_limit")
FORBIDDEN_CONTENT = ("content_policy_violation", "content_filter", "responsibleaipolicyviolation")

SPOKEN = (
    ("rate_limited", ("rate limit", "rate_limit", "ratelimit", "too many requests", "throttl")),
    ("overloaded", ("overload", "unavailable", "server_error", "server error", "internal", "timeout", "timed out")),
    ("unauthorised", ("unauthorized", "authentication", "api key", "api_key", "permission")),
    ("not_found", ("not_found", "not found", "does not exist")),
    ("bad_request", ("invalid", "bad request", "bad_request")),
)
"""For errors that come without a status: the first kind with a word that fits."""


def failure(status: int, headers: Mapping[str, str], body: bytes, *, secret: str = "") -> Failure:
    """Return what an answer with a status other than 2xx means."""
    parsed = _parsed(body)
    said = body.decode("utf-8", "replace")
    words = said if parsed is None else "\n".join(_strings(parsed, depth=0))
    message = title(said) if parsed is None else _message(parsed) or said
    if 300 <= status < 400:
        place = without_login(headers.get("location", "another place"))
        message = (
            f"the server redirects to {place}. Redirects are not followed: what is sent there is your code and key. "
            "If that server is yours or your provider's, set its final address as the base URL"
        )
    return Failure(
        kind_of(status, words.lower()),
        excerpt(message, secret=secret) or f"status {status} without a word",
        status=status,
        retry_after_s=retry_after_s(headers),
    )


def spoken_failure(error: object, *, status: int, secret: str = "") -> Failure:
    """Return what an error object inside an answer with status 200 means."""
    words = "\n".join(_strings(error, depth=0)).lower()
    code = error.get("code", error.get("status")) if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        kind, status = kind_of(code, words), code
    else:
        kind = kind_of(400, words)
        if kind == "bad_request":
            kind = next((name for name, signs in SPOKEN if any(sign in words for sign in signs)), "bad_answer")
    return Failure(
        kind, excerpt(_message({"error": error}) or words, secret=secret) or "an error without a word", status
    )


def kind_of(status: int, words: str) -> str:
    """Name the kind of an error; `words` is everything that the server said, in lower case."""
    if status in {402, 429} and any(sign in words for sign in NO_CREDIT):
        return "refused"
    match status:
        case 429:
            return "rate_limited"
        case 401 | 403:
            return "unauthorised"
        case 402:
            return "refused"
        case 404:
            return "not_found"
        case 413:
            return "too_long"
        case 400 | 422:
            if any(sign in words for sign in TOO_LONG):
                return "too_long"
            if any(sign in words for sign in FORBIDDEN_CONTENT):
                return "refused"
            return "refused" if any(sign in words for sign in NO_CREDIT) else "bad_request"
        case 408 | 409:
            return "overloaded"
    return "overloaded" if status >= 500 else "bad_request"


def title(said: str) -> str:
    """Return the title of an HTML page, or the text itself."""
    lower = said[:20_000].lower()
    begin = lower.find("<title>")
    end = lower.find("</title>", begin)
    return said[begin + len("<title>") : end] if 0 <= begin < end else said


def _parsed(body: bytes) -> object | None:
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def _message(parsed: object) -> str:
    """Find the words for people, wherever a provider puts them."""
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    if isinstance(parsed, str):
        return parsed
    if not isinstance(parsed, dict):
        return ""
    for name in ("error", "message", "detail", "msg"):
        value = parsed.get(name)
        if isinstance(value, (dict, list)) and (found := _message(value)):
            return found
        if isinstance(value, str) and value:
            return value
    return ""


def _strings(value: object, *, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 6 and isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part, depth=depth + 1)
