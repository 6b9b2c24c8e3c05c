"""README.md is true: its example prints what it says, its commands and its links exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_example_prints_what_the_readme_says(postgres_url, tmp_path):
    (example,), (printed,) = blocks("python"), blocks("text")
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        env={**os.environ, "AGENTKIT_DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == (printed, 0), ended.stderr


def test_each_make_target_that_the_readme_names_exists():
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z0-9]+)\b(?!\s+`)", "\n".join(blocks("sh"))))
    assert named == {"demo", "test"}
    assert named <= targets


def test_each_command_that_the_readme_names_exists_with_its_options():
    commands = [line.split("#")[0].split() for line in "\n".join(blocks("sh")).splitlines() if ".venv/bin/" in line]
    assert len(commands) == 3
    for program, command, *options in commands:
        help_text = subprocess.run(
            [Path(sys.executable).with_name(Path(program).name), command, "--help"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={**os.environ, "COLUMNS": "200"},
        ).stdout
        for option in options:
            if option.startswith("--"):
                assert option in help_text


def test_each_file_that_the_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    local = [link for link in links if "://" not in link]
    assert len(local) >= 4
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_the_make_file_lists_every_target_with_a_line_of_help():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    shown = subprocess.run(["make", "-s", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in shown.splitlines()] == phony


def test_the_exact_versions_name_no_address_and_no_path():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []
