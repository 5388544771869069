"""Editing text inside bytes: pure rules, and bytes outside an edit's match never change."""

from __future__ import annotations

from pieria.core.textedit.differing import diff
from pieria.core.textedit.encoding import Decoded, decode
from pieria.core.textedit.splicing import Edit, Mismatch, Spliced, splice

__all__ = ["Decoded", "Edit", "Mismatch", "Spliced", "decode", "diff", "splice"]
