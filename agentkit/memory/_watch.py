"""Stops an embedded Postgres once nobody uses it any more, however its users ended.

Run as a program, on its own and with the standard library alone: `python _watch.py HOME PG_CTL UID GID`.
It goes to the background, sleeps in `flock` until the last user's lock is gone (the kernel frees the lock of a
killed process too), and stops the server. A server that `agentkit db start` wants kept is left alone.
"""

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path


def main(home: Path, pg_ctl: str, uid: int, gid: int) -> None:
    """Waits for the last user, stops the server, and ends."""
    watch = os.open(home / "watch", os.O_RDWR | os.O_CREAT, 0o600)
    if not _try_lock(watch):
        return
    while True:
        users = os.open(home / "users", os.O_RDWR)
        fcntl.flock(users, fcntl.LOCK_EX)
        os.close(users)  # at once: whoever starts a server takes `lock` first and `users` second
        lock = os.open(home / "lock", os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        users = os.open(home / "users", os.O_RDWR)
        if (home / "keep").exists() or not (home / "postgres" / "postmaster.pid").exists():
            return
        if _try_lock(users):
            _stop(home / "postgres", pg_ctl, uid, gid)
            return
        os.close(users)
        os.close(lock)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(cluster: Path, pg_ctl: str, uid: int, gid: int) -> None:
    for mode in ("fast", "immediate"):
        done = subprocess.run(  # noqa: S603  our own program and paths
            [pg_ctl, "-D", str(cluster), "-m", mode, "-w", "-t", "30", "stop"],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=uid if os.geteuid() == 0 else None,
            group=gid if os.geteuid() == 0 else None,
            extra_groups=[] if os.geteuid() == 0 else None,
        )
        if done.returncode == 0:
            return


if __name__ == "__main__":
    if os.fork() == 0:
        os.setsid()
        with suppress(FileNotFoundError):  # the folder was removed: there is nothing left to stop
            main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    os._exit(0)
