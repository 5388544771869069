"""What a model is told of each tool. Apart from the tools, so that a session's start does not wait for their code.

A published version never changes: logs hold these texts, and golden files the requests made of them.
"""

from __future__ import annotations

from pieria.core.values import ToolSpec

MATCHES = 200
LINES = 2000
LIMIT_S = 600

EDIT = ToolSpec(
    name="edit",
    version=1,
    access="edit",
    description=(
        "Replace text in files: all edits or none. old must be in the file exactly once (all: replace every one); copy "
        "it from the file without line numbers, with enough around it to be unique. An edit's own path overrides path."
    ),
    parameters=(
        '{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object",'
        '"properties":{"old":{"type":"string"},"new":{"type":"string"},"all":{"type":"boolean"},'
        '"path":{"type":"string"}},"required":["old","new"]}}},"required":["edits"]}'
    ),
)

GLOB = ToolSpec(
    name="glob",
    version=1,
    access="read",
    description=(
        "List files whose path matches a pattern: *.py at any depth, src/*.py in src, src/**/*.py below it. "
        "Skips what .gitignore names."
    ),
    parameters=(
        '{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},"required":["pattern"]}'
    ),
)

GREP = ToolSpec(
    name="grep",
    version=1,
    access="read",
    description=(
        "Search file contents line by line with a regular expression (Python syntax). Skips what .gitignore names. "
        f"glob chooses files, e.g. *.py or src/**/*.ts; max matches defaults to {MATCHES}."
    ),
    parameters=(
        '{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},'
        '"glob":{"type":"string"},"ignore_case":{"type":"boolean"},"context":{"type":"integer"},'
        '"max":{"type":"integer"}},"required":["pattern"]}'
    ),
)

READ = ToolSpec(
    name="read",
    version=1,
    access="read",
    description=(
        f"Read a text file. Returns numbered lines (number, tab, text), at most {LINES} lines or 64 kB a call."
    ),
    parameters=(
        '{"type":"object","properties":{"path":{"type":"string"},"from_line":{"type":"integer"},'
        '"lines":{"type":"integer"}},"required":["path"]}'
    ),
)

SHELL = ToolSpec(
    name="shell",
    version=1,
    access="shell",
    description=(
        "Run a shell command in the working folder. No terminal, no input. Each call starts afresh: cd and variables "
        f"do not carry over. timeout_s is {LIMIT_S} at most and by default."
    ),
    parameters=(
        '{"type":"object","properties":{"command":{"type":"string"},"timeout_s":{"type":"number"}},'
        '"required":["command"]}'
    ),
)

TO_DO = ToolSpec(
    name="todo",
    version=1,
    access="note",
    description="Replace your task list. Use it for work of three steps or more; keep it true as you go.",
    parameters=(
        '{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":'
        '{"text":{"type":"string"},"state":{"type":"string","enum":["open","doing","done"]}},'
        '"required":["text","state"]}}},"required":["items"]}'
    ),
)

WRITE = ToolSpec(
    name="write",
    version=1,
    access="edit",
    description=(
        "Create a file, with its folders, or replace one whole. An existing file must have been read since it last "
        "changed. To change a part, use edit."
    ),
    parameters=(
        '{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},'
        '"required":["path","content"]}'
    ),
)

ALL = (EDIT, GLOB, GREP, READ, SHELL, TO_DO, WRITE)
"""Sorted by name: every agent's tools stand in one order in every request."""
