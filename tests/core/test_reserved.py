"""Reserved names: well-formed, used once, and settled before the features that record them."""

from __future__ import annotations

import re

from pieria.core.events import RESERVED, TABLE
from tests.architecture.test_vocabulary import REJECTED, words


def test_no_reserved_name_is_built_already() -> None:
    assert not {row.name for row in TABLE} & set(RESERVED)


def test_reserved_names_are_a_noun_and_a_past_tense_in_the_glossarys_words() -> None:
    irregular = "rewound found given sent begun set made withdrawn"
    shape = re.compile(rf"[a-z]+\.([a-z]+ed|{irregular.replace(' ', '|')})")
    assert [name for name in RESERVED if not shape.fullmatch(name)] == []
    assert [name for name in RESERVED if REJECTED.keys() & words(name.title())] == []


def test_each_meaning_is_one_sentence_or_two_on_one_line() -> None:
    assert [name for name, meaning in RESERVED.items() if not meaning.endswith(".") or len(meaning) > 110] == []
