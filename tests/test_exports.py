"""The public face: each package exports exactly what its `__all__` says, and `import agentkit` costs nothing."""

import importlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import agentkit

BELOW = sorted(f"agentkit.{each.name}" for each in pkgutil.iter_modules(agentkit.__path__) if each.name[0] != "_")
BELOW += ["agentkit.agents.middleware", "agentkit.testing.rehearsal"]


def public_names(module: ModuleType) -> set[str]:
    """What a module shows: neither private nor a module, and imported from within agentkit or made here."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "TYPE_CHECKING"
    }


@pytest.mark.parametrize("name", ["agentkit", *BELOW])
def test_a_package_says_in_sorted_order_what_it_exports_and_all_of_it_is_there(name):
    module = importlib.import_module(name)
    exported = list(getattr(module, "__all__", []))
    assert exported == sorted(exported, key=sort_key)
    assert len(exported) == len(set(exported))
    missing = [each for each in exported if not hasattr(module, each)]
    assert missing == []


def sort_key(name: str) -> tuple[int, str]:
    """As ruff sorts `__all__`: constants, then classes, then the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("name", BELOW)
def test_a_package_shows_nothing_that_it_does_not_export(name):
    module = importlib.import_module(name)
    if not hasattr(module, "__path__"):
        return  # a single file also shows what it imports
    assert public_names(module) - set(getattr(module, "__all__", [])) == set()


def test_each_public_name_of_agentkit_is_the_one_of_its_package():
    for name in agentkit.__all__:
        home = importlib.import_module(agentkit._HOME[name])
        assert getattr(agentkit, name) is getattr(home, name)
        assert name in home.__all__
    assert set(agentkit._HOME) == set(agentkit.__all__)
    assert set(agentkit.__all__) <= set(dir(agentkit))


def test_a_name_that_does_not_exist_is_an_error_that_lists_those_that_do():
    with pytest.raises(AttributeError, match=r"no attribute 'nope'; public are .*create_agent"):
        agentkit.nope


def test_importing_agentkit_loads_neither_langchain_nor_langgraph():
    script = (
        "import sys, agentkit; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'langchain', 'langchain_core', 'langgraph', 'langsmith', 'pydantic', 'psycopg', 'rich', 'typer'}))"
    )
    assert printed(script) == "[]"


def test_the_packages_of_agentkit_do_not_load_langchain():
    script = (
        f"import importlib, sys; [importlib.import_module(name) for name in {BELOW}]; print('langchain' in sys.modules)"
    )
    assert printed(script) == "False"


def printed(script: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()
