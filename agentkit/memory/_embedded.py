"""An embedded Postgres: started by its first user, shared by all, stopped after its last.

Each user holds a shared lock on a file, which the kernel frees however the process ends; so there are no lists of
process ids that could name the dead. A small watcher (see `_watch`) stops the server when the last user was killed.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from agentkit.errors import DatabaseError
from agentkit.memory import _pgfiles, _watch
from agentkit.memory._pgfiles import ServerUser

_SETTINGS = {"listen_addresses": "", "max_connections": "300", "shared_buffers": "64MB"}


@dataclass(frozen=True, kw_only=True)
class EmbeddedServer:
    """The Postgres of one data folder. Starting twice, also from several processes at once, is fine.

    `settings` are Postgres settings for a server that this object starts; one that runs already keeps its own.
    """

    home: Path = field(default_factory=_pgfiles.data_dir)
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def cluster(self) -> Path:
        """The folder with the database's files."""
        return self.home / "postgres"

    @contextmanager
    def use(self) -> Iterator[str]:
        """Gives the URL of a running server, which runs at least until the end of the block."""
        users = self.acquire()
        try:
            yield self.url()
        finally:
            self.release(users)

    def acquire(self) -> int:
        """Starts the server if needed and counts as a user of it until `release`. Returns the user's handle."""
        self._make_home()
        with _pgfiles.locked(self.home / "lock"):
            users = os.open(self.home / "users", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(users, fcntl.LOCK_SH)
                self._ensure_running()
            except BaseException:
                os.close(users)
                raise
        return users

    def release(self, users: int) -> None:
        """Stops using the server; the last user stops it, unless it is kept."""
        with _pgfiles.locked(self.home / "lock"):
            try:
                if _pgfiles.try_lock(users) and not self.kept:
                    self._stop()
            finally:
                os.close(users)

    def keep(self) -> str:
        """Starts the server and keeps it running without users, until `stop`. Returns its URL."""
        self._make_home()
        (self.home / "keep").touch()
        with self.use() as url:
            return url

    def stop(self) -> bool:
        """Stops the server now, also under its users. False if it was not running."""
        if not self.home.exists():
            return False
        with _pgfiles.locked(self.home / "lock"):
            (self.home / "keep").unlink(missing_ok=True)
            running = self.pid() is not None
            if running:
                self._stop()
            return running

    @property
    def kept(self) -> bool:
        """Whether the server is to outlive its users."""
        return (self.home / "keep").exists()

    def pid(self) -> int | None:
        """The process id of the running server, None if there is none."""
        facts = self._postmaster()
        return int(facts[0]) if facts else None

    def url(self) -> str:
        """The URL of the running server. Raises DatabaseError if it does not run."""
        facts = self._postmaster()
        if facts is None:
            raise DatabaseError(f"the embedded Postgres of {self.home} does not run; start it with `agentkit db start`")
        return f"postgresql://postgres@/postgres?host={quote(facts[4])}"

    def _make_home(self) -> None:
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = os.open(self.home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            os.close(probe)
        except OSError as error:
            raise DatabaseError(
                f"cannot write to the data folder {self.home} ({error.strerror}); "
                "set AGENTKIT_DATA_DIR to a folder of yours, or AGENTKIT_DATABASE_URL to a database"
            ) from error

    def _postmaster(self) -> list[str] | None:
        """The lines of postmaster.pid if it belongs to a living server that is ready."""
        try:
            lines = (self.cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DatabaseError(f"cannot read the database in {self.cluster}: {error.strerror}") from error
        ready = len(lines) > 7 and lines[7].strip() == "ready"  # noqa: PLR2004  the documented place of the status
        return [line.strip() for line in lines] if ready and _is_postgres(int(lines[0])) else None

    def _ensure_running(self) -> None:
        if self.pid() is not None:
            return
        user = _pgfiles.server_user(self.cluster)
        if user is not None:
            _pgfiles.let_run(_pgfiles.binaries())
            _pgfiles.let_through(self.cluster)
        self._init(user)
        self._drop_stale_locks(user)
        self._start(user)
        self._watch(user)

    def _init(self, user: ServerUser | None) -> None:
        if (self.cluster / "PG_VERSION").exists():
            version = (self.cluster / "PG_VERSION").read_text(encoding="utf-8").strip()
            if version != str(_pgfiles.POSTGRES_MAJOR):
                raise DatabaseError(
                    f"{self.cluster} was made by Postgres {version}, not {_pgfiles.POSTGRES_MAJOR}; "
                    "move it away, or set AGENTKIT_DATA_DIR to another folder"
                )
            return
        if self.cluster.exists() and any(self.cluster.iterdir()):
            raise DatabaseError(f"{self.cluster} holds files but no database; move them, or set AGENTKIT_DATA_DIR")
        # made aside and renamed, so that an interrupted initdb leaves nothing half made
        new = self.home / "postgres.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        if user is not None:
            os.chown(new, user.uid, user.gid)
        # a fixed locale: the same sorting and case rules whatever the user's environment says
        locale = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--encoding=UTF8")
        sync = ("--no-sync",) if self.settings.get("fsync") == "off" else ()
        _run(("initdb", "--auth=trust", "-U", "postgres", "--no-instructions", *locale, *sync, "-D", str(new)), user)
        with suppress(FileNotFoundError):
            self.cluster.rmdir()
        new.rename(self.cluster)

    def _drop_stale_locks(self, user: ServerUser | None) -> None:
        """A lock file whose number belongs to another program, or a zombie, would keep Postgres from starting."""
        folder = _pgfiles.socket_dir(self.cluster, user)
        for lock in (self.cluster / "postmaster.pid", folder / ".s.PGSQL.5432.lock"):
            with suppress(FileNotFoundError, ValueError, IndexError):
                if not _is_postgres(int(lock.read_text(encoding="utf-8").splitlines()[0])):
                    lock.unlink()

    def _start(self, user: ServerUser | None) -> None:
        settings = {
            **_SETTINGS,
            **self.settings,
            "unix_socket_directories": str(_pgfiles.socket_dir(self.cluster, user)),
        }
        options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
        log = self.cluster / "server.log"
        _run(("pg_ctl", "-D", str(self.cluster), "-l", str(log), "-o", options, "-w", "-t", "60", "start"), user, log)
        deadline = time.monotonic() + 10
        while self.pid() is None:  # pg_ctl returns when the server answers; its pid file may be a moment behind
            if time.monotonic() > deadline:
                raise DatabaseError(f"the embedded Postgres did not become ready; see {log}")
            time.sleep(0.01)

    def _watch(self, user: ServerUser | None) -> None:
        if not sys.executable:  # an interpreter inside another program: the last user stops the server, or the next one
            return
        ids = ("0", "0") if user is None else (str(user.uid), str(user.gid))
        program = (sys.executable, "-I", "-S", _watch.__file__, str(self.home), str(_pgfiles.binaries() / "pg_ctl"))
        subprocess.run(  # noqa: S603  our own program
            (*program, *ids),
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )

    def _stop(self) -> None:
        if self.pid() is None:
            return
        user = _pgfiles.server_user(self.cluster)
        command = ("pg_ctl", "-D", str(self.cluster), "-w", "-t", "30", "-m")
        try:
            _run((*command, "fast", "stop"), user)
        except DatabaseError:
            _run((*command, "immediate", "stop"), user)


def _is_postgres(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        # "1234 (name) S …": a zombie that nobody reaps, as in containers without an init, is no server
        name, state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").partition("(")[2].rsplit(")", 1)
        return name == "postgres" and state.split()[0] != "Z"
    except OSError:
        if Path("/proc/self").exists():
            return False
        listed = subprocess.run(  # noqa: S603  a number is the only variable
            ("/bin/ps", "-p", str(pid), "-o", "comm="), check=False, capture_output=True, text=True
        )
        return Path(listed.stdout.strip()).name == "postgres"


def _run(command: Sequence[str], user: ServerUser | None, log: Path | None = None) -> None:
    """Runs one of Postgres' programs. Its output goes to a file: a server it starts would hold a pipe open."""
    ids = {} if user is None else {"user": user.uid, "group": user.gid, "extra_groups": []}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        done = subprocess.run(  # type: ignore[call-overload]  # noqa: S603  our own programs; typeshed wants no dict here
            (str(_pgfiles.binaries() / command[0]), *command[1:]),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            timeout=120,
            **ids,
        )
        if done.returncode == 0:
            return
        output.seek(0)
        said = output.read().strip().splitlines()
    if log is not None and log.exists():
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or said
    tail = " / ".join(said[-3:])
    raise DatabaseError(f"the embedded Postgres failed: {command[0]} ended with {done.returncode}: {tail}")
