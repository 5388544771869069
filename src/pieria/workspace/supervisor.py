"""The supervisor of one command: a shell script that is gated, outlives us, and ends what takes or writes too much.

Invariant: the command begins only after "go", and its folder tells for ever whether it began and how it ended.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Mapping

from pieria.core.values import Value

SCRIPT = r"""
folder=$1 limit=$7 seconds=
finish() {
    self=$(exec sh -c 'echo $PPID')
    sweep list
    kill -s TERM -- -$$
    sleep "$8" || sleep 2
    sweep end
    marked=$(grep -lszxF "PIERIA_JOB=$PIERIA_JOB" /proc/[0-9]*/environ)
    for place in $marked; do
        place=${place%/environ}
        visit end "${place#/proc/}"
    done
}
sweep() {
    deed=$1
    for place in /proc/[0-9]*; do
        { read -r line <"$place/stat"; } || continue
        name=${line#*\(}
        set -- ${line##*) }
        [ "$4" = $$ ] && visit $deed "${place#/proc/}" "${name%%)*}"
    done
    [ -e /proc/self/stat ] && return
    set -- $(ps -A -o pid= -o pgid=)
    while [ $# -gt 1 ]; do
        [ "$2" = $$ ] && visit $deed "$1"
        shift 2
    done
}
visit() {
    case $2 in $supervisor | $self) return ;; esac
    case $1 in
        list) echo "killed $3 $2" >>"$folder/why" ;;
        end) kill -s KILL "$2" ;;
    esac
}
busy() {
    [ ! -s "$folder/rc" ] && [ -e "$folder/command" ]
}
watch() {
    trap '' TERM INT HUP QUIT
    slack=0
    read -r word <&5 && slack=2
    exec 5<&-
    busy || return
    PATH=/usr/bin:/bin:$PATH
    left=$(($5 - $(date +%s)))
    [ "$left" -gt "$6" ] && left=$6
    left=$((left + slack)) others=0
    while busy && kill -0 "$supervisor"; do
        why=
        [ "$left" -gt 0 ] || why=deadline
        size=$(wc -c <"$folder/out") || size=0
        [ $((size)) -gt "$limit" ] && why=output
        if [ -n "$why" ] && { [ ! -e "$folder/why" ] || [ $((others += 1)) -gt 4 ]; }; then
            echo $why >>"$folder/why"
            finish "$@"
            return
        fi
        sleep 1
        left=$((left - 1))
    done
    busy && [ -e "$folder/out" ] && finish "$@"
}
umask 077
(
    trap : TERM INT HUP QUIT
    if cd -P /proc/self 2>/dev/null; then supervisor=${PWD##*/}; else supervisor=$(exec sh -c 'echo $PPID'); fi
    if [ -z "$folder" ]; then
        echo "$supervisor"
        kill -s KILL $$
        { IFS= read -r folder && IFS= read -r place && IFS= read -r PIERIA_JOB && read -r due seconds; } <&3 || exit 0
        export PIERIA_JOB
        set -- "$folder" "$place" "$3" "$4" "$due" "$seconds" "$7" "$8"
    fi
    cd -- "$2" || exit 1
    ( watch "$@" ) >/dev/null 3<&- &
    exec 5<&-
    echo "$supervisor" >"$folder/pid"
    [ -n "$seconds" ] || { echo "$supervisor"; kill -s KILL $$; }
    read -r word <&3
    [ "$word" = go ] || exit 0
    exec >>"$folder/out" 3<&-
    (exec "$3" -c "$4" "${3##*/}" 2>&1 4<"$folder/command")
    echo $? >"$folder/rc"
)
exit 1
"""
"""With an empty folder it stands by: folder, cwd, mark, and deadline with timeout come as four lines on the gate.

Arguments: folder, cwd, shell, prelude, deadline (epoch s), timeout (s), output limit (bytes), grace (s).
Descriptors: 0 and 2 null, 1 the pid for us, 3 the gate, 5 the watch.

- The subshell is a foreground one that kills its parent: that makes it init's child, as `&` would, but under dash a
  background one ignores INT and QUIT for good, and so would the command.
- /proc/self is a link to one's own pid, and `cd -P` the one builtin that reads links; `$$` is the parent's.
- The traps are set inside, because a subshell resets them. They leave the supervisor alive when its group gets TERM.
- The command is a subshell of its own: else dash lends it its stderr, and its "Terminated" goes into the output.
- Before we know the pid the script is done with files: a job may be dropped, folder and all, from then on. One that
  stood by may still write its pid, and fails to if the folder is gone.
- `out` is made by the supervisor itself, before it forks the command: no `out`, nothing ever ran.
- The watch sleeps in `read` until we are gone (end of file) or ask for it (a line); then it looks once a second. Only
  when we don't act ourselves does it: 2 s late at the deadline, or when five looks saw no end after our own reason.
"""

BASH = 'umask {umask:04o};IFS= read -rd "" c<&4;exec 4<&-;eval "unset c;$c"'
SH = 'umask {umask:04o};c=$(cat <&4);exec 4<&-;eval "unset c;$c"'
"""The command comes by descriptor: not to be seen by `ps`, of any length, and `pkill -f WORD` spares its own shell."""

DEFAULTED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGTERM,
    signal.SIGCHLD,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXFSZ,
)
"""Python ignores SIGPIPE and SIGXFSZ, nohup HUP; a command must not inherit that."""

LOW = 8
"""Descriptors below this one are the script's."""


class Limits(Value, frozen=True, gc=False):
    """What a supervisor holds its command to. `deadline` is in seconds since the epoch."""

    timeout_s: int
    deadline: int
    output_bytes: int
    grace_s: float


class Gated(Value, frozen=True, gc=False):
    """A supervisor that waits: its pid, our ends of gate and watch, and the child of ours that started it."""

    pid: int
    gate: int
    watch: int
    starter: int


def launch(
    folder: str, cwd: str, *, shells: tuple[str, str], umask: int, limits: Limits, environment: Mapping[str, str]
) -> Gated:
    """Start a supervisor, in a session of its own. `shells`: the supervisor's, the command's. Raises OSError.

    Without a folder it stands by until `assign`.
    """
    sh, shell = shells
    prelude = BASH if os.path.basename(shell) == "bash" else SH
    arguments = ("sh", "-c", SCRIPT, "sh", folder, cwd, shell, prelude.format(umask=umask), str(limits.deadline),
                 str(limits.timeout_s), str(limits.output_bytes), f"{limits.grace_s:g}")  # fmt: skip
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for mine in (1, 1, 0):  # gate, watch, pid
            ends = [_high(fd) for fd in os.pipe()]
            ours.append(ends[mine])
            theirs.append(ends[1 - mine])
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            *((os.POSIX_SPAWN_DUP2, fd, number) for fd, number in zip(theirs, (3, 5, 1), strict=True)),
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in _strays()),
        ]
        starter = os.posix_spawn(
            sh, arguments, environment, file_actions=actions, setsid=True, setsigmask=(), setsigdef=DEFAULTED
        )
        while theirs:
            os.close(theirs.pop())
        pid = _first_line(ours[2])
        if not pid:
            _, status = os.waitpid(starter, 0)
            raise OSError(errno.ECHILD, f"the supervisor did not start (status {status})", cwd)
        gate, watch = ours.pop(0), ours.pop(0)
        return Gated(pid, gate, watch, starter)
    finally:
        for fd in (*ours, *theirs):
            os.close(fd)


def assign(gated: Gated, folder: str, cwd: str, *, limits: Limits, mark: str) -> bool:
    """Give a supervisor that stands by its job; it still waits for "go". False: it is gone, or a path has a newline."""
    lines = (folder, cwd, mark, f"{limits.deadline} {limits.timeout_s}")
    if any("\n" in line for line in lines):
        return False
    try:
        os.write(gated.gate, os.fsencode("\n".join(lines) + "\n"))
    except BrokenPipeError:
        return False
    return True


def _high(fd: int) -> int:
    """Move a descriptor out of the way of the script's numbers."""
    if fd >= LOW:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOW)
    os.close(fd)
    return moved


def _strays() -> list[int]:
    """Inheritable descriptors that whoever started us left open: none of the command's business."""
    found = []
    for name in os.listdir("/dev/fd"):
        fd = int(name)
        try:
            if fd > 2 and fd not in {3, 5} and os.get_inheritable(fd):
                found.append(fd)
        except OSError as error:  # the descriptor of the listing itself
            if error.errno != errno.EBADF:
                raise
    return found


def _first_line(fd: int) -> int:
    """Return the number in the line that a pipe brings, 0 if it ends before."""
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(fd, 32)
        if not part:
            return 0
        data += part
    return int(data)
