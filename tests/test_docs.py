"""Every Python example in docs/ runs, and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile("\n" * line + block["code"], str(page), "exec"), names)
        if block["printed"] is not None:
            assert said.getvalue() == block["printed"], f"{page.name}, line {line}"


def test_every_page_is_found_from_the_index_and_every_link_leads_somewhere() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES} - {"README.md"} <= set(re.findall(r"\(([a-z-]+\.md)\)", index))
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert "://" in link or (page.parent / link).exists(), f"{page.name}: {link}"
