"""Policy: what each mode and rule lets pass, and the laws that no setting may break."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pieria.core.events.session import SettingsApplied
from pieria.core.policy import Rule, Ruled, guidance, parse_rule, rule
from pieria.core.values import Blob, Change, Examined, TouchedPath

ROOT = "/home/ada/app"
SECRET = TouchedPath(given=".env", real=f"{ROOT}/.env", inside=True, secret=True)
OUTSIDE = TouchedPath(given="/etc/hosts", real="/etc/hosts", inside=False)
GUARDED = TouchedPath(given="AGENTS.md", real=f"{ROOT}/AGENTS.md", inside=True, guarded=True)
HOOK = TouchedPath(given=".git/hooks/x", real=f"{ROOT}/.git/hooks/x", inside=True, guarded=True)


def path(name: str) -> TouchedPath:
    return TouchedPath(given=name, real=f"{ROOT}/{name}", inside=True)


def touching(access: str, *paths: TouchedPath) -> Examined:
    return Examined(access=access, action="a", paths=paths)


def command(text: str, words: tuple[str, ...] | None = None) -> Examined:
    return Examined(access="shell", action="a", command=text, words=words)


def plain(text: str) -> Examined:
    return command(text, tuple(text.split()))


def settings(mode: str = "edits", *, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> SettingsApplied:
    return SettingsApplied(mode=mode, allow=allow, deny=deny)


def ruled(tool: str, facts: Examined, given: SettingsApplied) -> str:
    return rule(tool, facts, given, root=ROOT).ruling


# --- modes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "facts", "plan", "ask", "edits", "full"),
    [
        ("read", touching("read", path("a.py")), "allow", "allow", "allow", "allow"),
        ("grep", touching("read"), "allow", "allow", "allow", "allow"),
        ("read", touching("read", SECRET), "ask", "ask", "ask", "allow"),
        ("read", touching("read", path("a.py"), OUTSIDE), "ask", "ask", "ask", "allow"),
        ("edit", touching("edit", path("a.py")), "deny", "ask", "allow", "allow"),
        ("edit", touching("edit", path("a.py"), OUTSIDE), "deny", "ask", "ask", "allow"),
        ("edit", touching("edit"), "deny", "ask", "ask", "allow"),
        ("write", touching("edit", GUARDED), "deny", "ask", "ask", "ask"),
        ("read", touching("read", GUARDED), "allow", "allow", "allow", "allow"),
        ("write", touching("edit", HOOK), "deny", "deny", "deny", "deny"),
        ("read", touching("read", HOOK), "deny", "deny", "deny", "deny"),
        ("shell", plain("pytest"), "deny", "ask", "ask", "allow"),
        ("shell", command("a | b"), "deny", "ask", "ask", "allow"),
        ("todo", touching("note"), "allow", "allow", "allow", "allow"),
    ],
)
def test_each_mode_rules_as_documented(tool, facts, plan, ask, edits, full) -> None:
    found = {mode: ruled(tool, facts, settings(mode)) for mode in ("plan", "ask", "edits", "full")}
    assert found == {"plan": plan, "ask": ask, "edits": edits, "full": full}


def test_a_mode_that_is_not_known_asks_for_everything_that_changes_anything() -> None:
    assert ruled("edit", touching("edit", path("a")), settings("later")) == "ask"
    assert ruled("shell", plain("ls"), settings("later")) == "ask"


@pytest.mark.parametrize(
    "place",
    [
        TouchedPath(given="x", real=f"{ROOT}/.git/config", inside=True),
        TouchedPath(given="sub/.git", real=f"{ROOT}/sub/.git", inside=True),
        TouchedPath(given=".GIT/config", real=f"{ROOT}/.GIT/config", inside=True),
        TouchedPath(given=".git/config", real="/srv/store/config", inside=False),
        TouchedPath(given="/other/.git/config", real="/other/.git/config", inside=False),
    ],
)
def test_git_is_closed_to_file_tools_however_it_is_reached(place) -> None:
    given = settings("full", allow=("edit", "edit(**)", "edit(/**)"))
    assert ruled("edit", touching("edit", place), given) == "deny"


def test_names_that_only_begin_like_git_are_ordinary() -> None:
    assert ruled("edit", touching("edit", path(".github/ci.yml"), path(".gitignore")), settings()) == "allow"


def test_a_change_of_a_file_that_the_call_did_not_name_counts_as_outside() -> None:
    sly = Examined(
        access="edit",
        action="a",
        paths=(path("a.py"),),
        changes=(Change(path="/etc/passwd", pre_sha256=None, post_sha256=None),),
    )
    assert ruled("edit", sly, settings()) == "ask"
    assert ruled("edit", sly, settings(allow=("edit(**)",))) == "ask"
    assert ruled("edit", sly, settings("full", deny=("edit(/etc/**)",))) == "deny"


def test_no_rule_gives_standing_leave_for_guarded_paths() -> None:
    given = settings("edits", allow=("write", "write(**)", "write(AGENTS.md)"))
    assert ruled("write", touching("edit", GUARDED, path("a")), given) == "ask"


# --- allow ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tool", "facts"),
    [
        ("shell(pytest *)", "shell", plain("pytest -x tests")),
        ("shell(pytest *)", "shell", plain("pytest")),
        ("bash(pytest)", "shell", plain("pytest")),
        ("Shell(npm run test:*)", "shell", plain("npm run test:unit")),
        ("shell", "shell", plain("make all")),
        ("shell", "shell", command("\n make all \n", ("make", "all"))),
        ("shell(*)", "shell", plain("make all")),
        ("shell(git log -n *)", "shell", command("git log -n 'a b'", ("git", "log", "-n", "a b"))),
        ("shell(ls *)", "shell", plain("ls *.py")),
        ("shell(echo *)", "shell", command('echo "a; b | c"', ("echo", "a; b | c"))),
        ("read(/etc/**)", "read", touching("read", OUTSIDE)),
        ("read(/etc/hosts)", "read", touching("read", OUTSIDE)),
        ("read(.env)", "read", touching("read", SECRET)),
        ("read", "read", touching("read", OUTSIDE)),
    ],
)
def test_an_allow_rule_covers_what_it_says(text, tool, facts) -> None:
    assert rule(tool, facts, settings("edits", allow=(text,)), root=ROOT) == Ruled(
        "allow", "rule", f"rule allow {text}"
    )


@pytest.mark.parametrize(
    ("text", "tool", "facts"),
    [
        ("shell(pytest)", "shell", plain("pytest -x")),
        ("shell(pytest *)", "shell", plain("pytest2")),
        ("shell(pytest *)", "shell", plain("./pytest")),
        ("shell(pytest *)", "shell", plain("PYTEST")),
        ("shell(git status *)", "shell", plain("git -C x status")),
        ("shell(a b c *)", "shell", plain("a b")),
        ("shell", "shell", command("PATH=. ls", ("PATH=.", "ls"))),
        ("shell", "shell", command("ls", ("PATH=.", "ls"))),
        ("shell", "shell", command("")),
        ("shell", "shell", command("", ())),
        ("shell", "read", touching("read", OUTSIDE)),
        ("read", "read", touching("read", SECRET)),
        ("read(**)", "read", touching("read", SECRET)),
        ("read(*)", "read", touching("read", SECRET)),
        ("read(src/**)", "read", touching("read", OUTSIDE)),
        ("read(etc/**)", "read", touching("read", OUTSIDE)),
        ("read(/etc/*)", "read", touching("read", OUTSIDE, SECRET)),
        ("read(/etc/*)", "grep", touching("read", OUTSIDE)),
    ],
)
def test_an_allow_rule_covers_nothing_else(text, tool, facts) -> None:
    assert ruled(tool, facts, settings("edits", allow=(text,))) == "ask"


def test_an_allow_rule_for_edits_reads_paths_from_the_root() -> None:
    given = settings("ask", allow=("edit(src/**/*.py)",))
    assert ruled("edit", touching("edit", path("src/a.py"), path("src/x/y/b.py")), given) == "allow"
    assert ruled("edit", touching("edit", path("src/a.py"), path("setup.py")), given) == "ask"
    assert ruled("write", touching("edit", path("src/a.py")), given) == "ask"
    assert rule("edit", touching("edit", path("src/a.py")), given).ruling == "ask", "no root, no relative path"


def test_a_command_that_starts_outside_the_workspace_is_not_covered_by_a_rule() -> None:
    facts = msgspec.structs.replace(plain("make"), paths=(OUTSIDE,), cwd="/etc")
    assert ruled("shell", facts, settings(allow=("shell(make)",))) == "ask"


SYNTAX = ["&&", ";", "\n", "|", "&", "||", "|&", "\r\n", "$(", "`", "<(", ">", "<<", "#\n", "\\\n", "$X", "{a,b}"]


@pytest.mark.parametrize("syntax", SYNTAX)
def test_shell_syntax_is_never_allowed_by_a_rule_even_if_the_words_claim_to_be_plain(syntax) -> None:
    text = f"git status {syntax} rm -rf x"
    given = settings(allow=("shell", "shell(*)", "shell(git status *)", "shell(git *)"))
    assert ruled("shell", command(text), given) == "ask"
    assert ruled("shell", command(text, ("git", "status", "rm", "-rf", "x")), given) == "ask"


@given(
    st.lists(st.sampled_from(["git", "status", "a", "'b c'", "rm"]), min_size=1, max_size=4),
    st.sampled_from(SYNTAX),
    st.lists(st.sampled_from(["git", "-x", '"y"', "rm"]), min_size=1, max_size=3),
)
def test_no_allow_rule_allows_shell_syntax(before, syntax, after) -> None:
    text = " ".join([*before, syntax, *after])
    words = tuple(word.strip("'\"") for word in [*before, *after])
    given = settings(allow=("shell", "shell(*)", f"shell({before[0].split()[0].strip(chr(39))} *)"))
    assert ruled("shell", command(text, None), given) == "ask"
    assert ruled("shell", command(text, words), given) == "ask"


# --- deny -----------------------------------------------------------------------------------------------------

RM = [
    "rm x", "/bin/rm x", "\\rm x", "r\\m x", "'rm' x", 'r""m x', "command rm x", "env X=1 rm x", "X=1 rm x",
    "timeout 5 rm x", "timeout -k 5 10 rm x", "ls | xargs rm", "xargs -0 rm", "sudo -u bob rm x", "nohup rm x &",
    "git status && rm -rf x", "git status; rm x", "git status\nrm x", "git status | rm x", "git status & rm x",
    "echo $(rm x)", 'echo "$(rm x)"', "echo `rm x`", "cat <(rm x)", 'bash -c "rm x"', "bash -c 'bash -c \"rm x\"'",
    "eval rm x", "eval 'rm x'", "cat <<E\n$(rm x)\nE", "git status #\nrm x", "f() { rm x; }; f", "(rm x)", "{ rm x; }",
    "if true; then rm x; fi", "while rm x; do :; done", "find . -exec rm {} +", "> /tmp/f rm x", "2>/dev/null rm x",
    "bash -c rm\\ x", "X='a b' rm x", "X=a\\ b rm x", "! rm x", "$'\\x72m' x", "$CMD x", "$(echo rm) x", "`echo rm` x",
    "/bin/r? x", "{rm,-rf,x}", "python -c \"import os; os.system('rm x')\"", "RM x", "a[0]=1 rm x", "trap 'rm x' EXIT",
    "r\\\nm x", "/bin/r* x", "${A}m x", "/bin/[r]m x",
    "echo 'it''s' && rm x", "true;rm x", "case x in x) rm y;; esac", "exec 3>f; rm x", "time -p rm x",
]  # fmt: skip


@pytest.mark.parametrize("text", RM)
@pytest.mark.parametrize("mode", ["ask", "edits", "full"])
def test_a_denied_program_is_found_in_every_spelling(text, mode) -> None:
    given = settings(mode, allow=("shell", "shell(*)"), deny=("shell(rm)",))
    assert rule("shell", command(text), given, root=ROOT) == Ruled("deny", "rule", "rule deny shell(rm)")


@pytest.mark.parametrize(
    "text",
    [
        "grep rm file", "rmdir x", "echo rm", "git rm x", "ls ./rm.txt", "alarm x", "firm", "cat rm", "make rm",
        'echo "$HOME"', 'test "$A" = "$B"', "X=$(date) make", "for f in *.py; do echo $f; done", "cd $DIR && make",
        "echo $(( $x + 1 ))", "[[ $a && $b ]]", "echo ${HOME}/x $Y", "echo $(date) $Y", "python x.py > $OUT",
    ],
)  # fmt: skip
def test_a_deny_rule_leaves_ordinary_commands_alone(text) -> None:
    assert ruled("shell", command(text), settings("full", deny=("shell(rm *)",))) == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf x", "rm -fr x", "rm -r -f x", "rm -f -r x", "rm x -rf", "rm -vrf x", "/bin/rm -Rf x", "\\rm -rf x",
        "command rm -rf x", "env X=1 rm -fr x", "timeout 5 rm -r -f x", "xargs rm -fr",
    ],
)  # fmt: skip
def test_denied_options_are_found_in_any_order(text) -> None:
    assert ruled("shell", command(text), settings("full", deny=("shell(rm -rf *)",))) == "deny"
    assert ruled("shell", command(text.replace("f", "v")), settings("full", deny=("shell(rm -rf)",))) == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "git push",
        "git push origin",
        "git -C x push",
        "git --no-pager push",
        "git -c a=b -C x push",
        "git --git-dir=x push",
    ],
)
def test_options_before_a_denied_word_do_not_hide_it(text) -> None:
    assert ruled("shell", plain(text), settings("full", deny=("shell(git push *)",))) == "deny"
    assert ruled("shell", plain(text), settings("full", deny=("shell(git commit *)",))) == "allow"


@pytest.mark.parametrize("text", ["git status", "git commit -m push", "git stash push", 'git -C "$DIR" status'])
def test_a_denied_word_must_stand_where_it_means_something(text) -> None:
    assert ruled("shell", command(text), settings("full", deny=("shell(git push *)",))) == "allow"


@pytest.mark.parametrize(
    ("text", "tool", "place", "found"),
    [
        ("edit(secret/**)", "edit", "secret/a/b", "deny"),
        ("edit(secret)", "edit", "secret/a/b", "deny"),
        ("edit(secret/)", "edit", "secret/a", "deny"),
        ("edit(SECRET/*)", "edit", "secret/a", "deny"),
        ("edit(secret/**)", "write", "secret/a", "deny"),
        ("write(secret/**)", "edit", "secret/a", "deny"),
        ("read(secret/**)", "grep", "secret/a", "deny"),
        ("read(secret/**)", "edit", "secret/a", "allow"),
        ("edit(**/*.lock)", "edit", "a/b/uv.lock", "deny"),
        ("edit(*.lock)", "edit", "a/uv.lock", "allow"),
        (f"edit({ROOT}/x)", "edit", "x", "deny"),
        ("edit", "write", "x", "deny"),
        ("todo", "edit", "x", "allow"),
    ],
)
def test_a_deny_rule_for_paths_covers_what_lies_below_and_the_other_tool(text, tool, place, found) -> None:
    access = "read" if tool == "grep" else "edit"
    assert ruled(tool, touching(access, path("ok"), path(place)), settings("full", deny=(text,))) == found


def test_a_deny_rule_sees_through_links_and_names_both() -> None:
    link = TouchedPath(given="./link/key", real="/srv/keys/key", inside=False)
    for text in ("read(link/**)", "read(/srv/keys/*)", "read(/srv)"):
        assert ruled("read", touching("read", link), settings("full", deny=(text,))) == "deny"


def test_a_command_too_long_to_be_read_is_denied_when_there_is_a_deny_rule() -> None:
    long = msgspec.structs.replace(command(""), command=Blob(seq=1, sha256="0", len=9000))
    assert ruled("shell", long, settings("full", deny=("shell(rm)",))) == "deny"
    assert ruled("shell", long, settings("full", deny=("edit",))) == "allow"
    words = msgspec.structs.replace(long, words=("bash", "-c", "rm x"))
    assert ruled("shell", words, settings("full", deny=("shell(rm)",))) == "deny"
    assert ruled("shell", words, settings("full", deny=("shell(git)",))) == "allow"


def test_a_star_inside_a_word_of_a_deny_rule_is_any_characters() -> None:
    given = settings("full", deny=("shell(npm-* run test:*)",))
    assert ruled("shell", command("npm-x run test:unit"), given) == "deny"
    assert ruled("shell", command("npm-* run 'test:unit' more"), given) == "deny"
    assert ruled("shell", command("npm-x run build"), given) == "allow"


def test_a_deny_rule_that_cannot_be_read_stops_everything() -> None:
    assert ruled("read", touching("read", path("a")), settings("full", deny=("nonsense(",))) == "deny"


def test_denying_a_bare_tool_stops_it_even_where_the_mode_always_allows() -> None:
    assert ruled("todo", touching("note"), settings("full", deny=("todo",))) == "deny"
    assert ruled("shell", command("a | b"), settings("full", deny=("Bash",))) == "deny"


# --- laws -----------------------------------------------------------------------------------------------------

STRENGTH = {"allow": 0, "ask": 1, "deny": 2}
TEXTS = (
    "shell; shell(*); shell(rm *); shell(git *); bash(git push); edit; edit(**); write(src/**); read(**);"
    " read(/etc/**); read(.env); grep; todo; edit(AGENTS.md)"
)
rules = st.lists(st.sampled_from(TEXTS.split("; ")), max_size=4).map(tuple)
modes = st.sampled_from(["plan", "ask", "edits", "full", "other"])
calls = st.one_of(
    st.tuples(
        st.just("shell"), st.sampled_from([plain("git push"), plain("rm x"), command("git a; rm b"), plain("ls")])
    ),
    st.tuples(
        st.sampled_from(["read", "grep"]),
        st.lists(st.sampled_from([SECRET, OUTSIDE, GUARDED, HOOK, path("src/a")]), max_size=2).map(
            lambda paths: touching("read", *paths)
        ),
    ),
    st.tuples(
        st.sampled_from(["edit", "write"]),
        st.lists(st.sampled_from([SECRET, OUTSIDE, GUARDED, HOOK, path("src/a")]), max_size=2).map(
            lambda paths: touching("edit", *paths)
        ),
    ),
    st.just(("todo", touching("note"))),
)


@given(calls, modes, rules, rules, rules)
def test_no_allow_rule_weakens_a_denial_and_no_deny_rule_weakens_anything(call, mode, allow, deny, more) -> None:
    tool, facts = call
    before = ruled(tool, facts, settings(mode, allow=allow, deny=deny))
    assert (ruled(tool, facts, settings(mode, allow=allow + more, deny=deny)) == "deny") == (before == "deny")
    assert STRENGTH[ruled(tool, facts, settings(mode, allow=allow, deny=deny + more))] >= STRENGTH[before]


@given(calls, modes, rules, rules, st.randoms(use_true_random=False))
def test_the_order_of_rules_changes_no_ruling(call, mode, allow, deny, chance) -> None:
    mixed = settings(mode, allow=tuple(chance.sample(allow, len(allow))), deny=tuple(chance.sample(deny, len(deny))))
    assert ruled(*call, mixed) == ruled(*call, settings(mode, allow=allow, deny=deny))


@given(calls, modes, rules, rules)
def test_every_ruling_has_a_reason_that_names_what_decided(call, mode, allow, deny) -> None:
    found = rule(*call, settings(mode, allow=allow, deny=deny), root=ROOT)
    wanted = ("rule allow ", "rule deny ") if found.by == "rule" else (f"mode {mode}: ",)
    assert found.reason.startswith(wanted)
    assert found.reason in guidance(found, call[1])


@given(st.text(alphabet="rm -f'\"\\$`(){}[]<>|&;#*?=\n~x/,!", max_size=40))
def test_any_text_can_be_ruled_on(text) -> None:
    given = settings("full", deny=("shell(rm -rf *)",), allow=("shell",))
    assert ruled("shell", command(text, tuple(text.split())), given) in {"allow", "deny"}


# --- texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (" Shell( git  push * ) ", Rule("Shell( git  push * )", "shell", words=("git", "push", "*"))),
        ("BASH", Rule("BASH", "shell")),
        ("edit(./src//a/)", Rule("edit(./src//a/)", "edit", path="src/a/**")),
        ("edit(app/(group)/[id].ts)", Rule("edit(app/(group)/[id].ts)", "edit", path="app/(group)/[id].ts")),
        ("read(.)", "no name is left"),
        ("read(/)", Rule("read(/)", "read", path="/**")),
        ("read(/etc)", Rule("read(/etc)", "read", path="/etc")),
        ("shel(rm)", "no tool 'shel'"),
        ("", "no tool ''"),
        ("shell(rm", "closing parenthesis"),
        ("shell(rm) x", "closing parenthesis"),
        ("shell()", "nothing stands between"),
        ("shell(a && b)", "plain words without '&'"),
        ("shell(a 'b')", 'plain words without "\'"'),
        ("edit(../x)", "'..' is not allowed"),
        ("edit(~/x)", "'~' has no meaning"),
        ("todo(x)", "takes no pattern"),
    ],
)
def test_a_rules_text_is_parsed_or_its_fault_is_named(text, parsed) -> None:
    found = parse_rule(text)
    assert found == parsed if isinstance(parsed, Rule) else parsed in str(found)


def test_guidance_says_what_to_do_instead() -> None:
    deny, plan = "The same {} is not allowed either. Go on without it, or say what is needed and why.", settings("plan")
    for tool, facts, applied, said in [
        ("shell", plain("rm x"), settings(deny=("shell(rm)",)), deny.format("command in another spelling")),
        ("edit", touching("edit", path("a")), settings(deny=("edit(a)",)), deny.format("path with another tool")),
        ("shell", plain("ls"), plan, "Use read, grep and glob to find out more, and describe what you would run."),
        ("edit", touching("edit", path("a")), plan, "Describe the change that you would make instead of making it."),
        ("edit", touching("edit", HOOK), settings("full"), "where the shell is allowed, ask git itself."),
    ]:
        found = rule(tool, facts, applied, root=ROOT)
        assert guidance(found, facts).startswith(f"Not allowed ({found.reason}). ")
        assert guidance(found, facts).endswith(said)
