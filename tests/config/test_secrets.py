"""Known secrets: nothing known survives masking, and revealing gives back exactly what was there."""

from __future__ import annotations

import base64
import json
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pieria.config.secrets import KnownSecrets, dotenv_secrets, environment_secrets
from pieria.core.ports import Secrets

KEY = 'sk-"live"/42+x é\n??>~~~~'
names = st.sampled_from(["API_KEY", "DB_PASSWORD", "A", "B.C", "weird name"])
values = st.text(alphabet='abAB12+/="\\ é\n:_-', min_size=1, max_size=14)


def test_known_secrets_are_the_port() -> None:
    secrets: Secrets = KnownSecrets({"K": "12345678"})
    assert secrets.reveal(secrets.mask("a 12345678 b")) == "a 12345678 b"


def test_each_spelling_of_a_value_is_masked_and_comes_back() -> None:
    secrets = KnownSecrets({"KEY": KEY})
    raw = KEY.encode()
    for form, text in {
        "": KEY,
        ":json": json.dumps(KEY, ensure_ascii=False)[1:-1],
        ":json-ascii": json.dumps(KEY)[1:-1],
        ":url": urllib.parse.quote(KEY, safe=""),
        ":url-path": urllib.parse.quote(KEY),
        ":url-form": urllib.parse.quote_plus(KEY),
        ":base64": base64.b64encode(raw).decode().rstrip("="),
        ":base64-url": base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }.items():
        masked = secrets.mask(f"<{text}> {text}")
        assert masked == f"<<<secret:KEY{form}>>> <<secret:KEY{form}>>"
        assert secrets.reveal(masked) == f"<{text}> {text}"


def test_the_longest_value_wins() -> None:
    secrets = KnownSecrets({"SHORT": "password", "LONG": "password-of-ada"})
    assert secrets.mask("password-of-ada, password") == "<<secret:LONG>>, <<secret:SHORT>>"


def test_a_text_without_secrets_is_the_same_object() -> None:
    text = "nothing here " * 1000
    assert KnownSecrets({}).mask(text) is text
    assert KnownSecrets({"KEY": "12345678"}).mask(text) is text
    assert KnownSecrets({"KEY": "12345678"}).reveal(text) is text


def test_short_values_are_not_known() -> None:
    assert KnownSecrets({"KEY": "1234567"}).mask("1234567") == "1234567"


@pytest.mark.parametrize(
    "text", ["<<secret:OTHER>>", "<<secret:>>", "<<secret:KEY", "<<secret:KEY:nope>>", "<<secret: KEY>>"]
)
def test_a_marker_that_is_not_known_stays_as_it_is(text: str) -> None:
    secrets = KnownSecrets({"KEY": "12345678"})
    assert secrets.reveal(text) == text
    assert secrets.mask(text) == text


def test_a_value_that_is_part_of_its_own_marker_gets_another_name() -> None:
    secrets = KnownSecrets({"MY_PASSWORD": "PASSWORD", "XY_PASSWORD": "_PASSWORD"})
    masked = secrets.mask("PASSWORD _PASSWORD")
    assert "PASSWORD" not in masked
    assert secrets.reveal(masked) == "PASSWORD _PASSWORD"


@given(
    st.dictionaries(names, values, max_size=4), st.lists(st.one_of(values, st.text(max_size=8)), max_size=6), st.data()
)
def test_masking_is_undone_exactly_and_no_value_survives_it(known, pieces, data) -> None:
    secrets = KnownSecrets(known)
    pieces = [*pieces, *data.draw(st.lists(st.sampled_from(list(known.values()) or [""]), max_size=4))]
    text = "".join(data.draw(st.permutations(pieces)))
    if "<" in text or ">" in text:
        return
    masked = secrets.mask(text)
    assert secrets.reveal(masked) == text
    assert not [value for value in known.values() if len(value) >= 8 and value in masked]
    assert secrets.mask(masked) == masked


def test_variables_are_known_by_their_names() -> None:
    environ = {
        "OPENAI_API_KEY": "a", "GITHUB_TOKEN": "b", "db_password": "c", "CLIENT_SECRET": "d",
        "TOKEN_COUNT": "e", "PATH": "f", "KEYBOARD": "g",
    }  # fmt: skip
    assert set(environment_secrets(environ)) == {"OPENAI_API_KEY", "GITHUB_TOKEN", "db_password", "CLIENT_SECRET"}


def test_a_dotenv_gives_what_looks_secret_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# comment\nDEBUG=1\nNODE_ENV=development\nexport STRIPE_KEY='sk # live'\nDB_PASS = plain words # why\n"
        'DATABASE_URL="postgres://ada:pw@db/app"\nSITE=https://example.org\nOPAQUE=9f8e7d6c5b4a39281706\nbad line\n'
        "1X=2\nFILE=/srv/data/2024/report.json\n"
    )
    assert dotenv_secrets(str(tmp_path)) == {
        "STRIPE_KEY": "sk # live",
        "DB_PASS": "plain words",
        "DATABASE_URL": "postgres://ada:pw@db/app",
        "OPAQUE": "9f8e7d6c5b4a39281706",
    }


def test_a_dotenv_that_is_not_there_or_no_file_gives_nothing(tmp_path: Path) -> None:
    assert dotenv_secrets(str(tmp_path)) == {}
    (tmp_path / ".env").mkdir()
    assert dotenv_secrets(str(tmp_path)) == {}
