"""Importing what the user named, with failures that say where they come from."""

import importlib
import importlib.util
import os
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from agentkit.cli._failures import Stop, first_line
from agentkit.errors import AgentkitError

__all__ = ["import_file", "import_named"]


def import_named(name: str) -> ModuleType:
    """The module of that dotted name; one in the folder we were started in comes after installed ones.

    Raises:
        Stop: there is none, or it raises.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return _told(name, lambda: importlib.import_module(name))


def import_file(path: Path) -> ModuleType:
    """The module in that file.

    Raises:
        Stop: it raises.
    """
    return _told(str(path), lambda: _module(path.resolve()))


def _told(shown: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except AgentkitError as error:
        raise Stop(f"{shown}: {error}") from error
    except (Exception, SystemExit) as error:
        inside = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).name == Path(shown).name
        ]
        line = getattr(error, "lineno", None) or (inside[-1].lineno if inside else None)
        where = f" in line {line}" if line else ""
        raise Stop(f"{shown} raises {type(error).__name__}{where}: {first_line(error)}; {_fix(error)}") from error


def _fix(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "install it, or start in the folder it is in"
    model = os.environ.get("AGENTKIT_MODEL")  # what the ready-made graphs take, when they are imported
    return f"mend the file, or AGENTKIT_MODEL={model}" if model else "mend the file"


def _module(path: Path) -> ModuleType:
    """Import a file under the name that it has in its package, so that what it stores can be found again."""
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    if name.split(".")[0] in sys.stdlib_module_names or not _is(sys.modules.get(name), path):
        name = f"agentkit_graph_{zlib.crc32(str(path).encode()):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Stop(f"{path} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is(module: ModuleType | None, path: Path) -> bool:
    return module is None or (
        getattr(module, "__file__", None) is not None and Path(str(module.__file__)).resolve() == path
    )
