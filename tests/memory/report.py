"""Makes the tables of docs/memory.md: `python tests/memory/report.py` measures and writes them into the page."""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from memory import growth, recall  # noqa: E402  found by the line above

from agentkit.memory import open_memory  # noqa: E402
from agentkit.memory._embedded import EmbeddedServer  # noqa: E402


def put(text, name, lines):
    """The page with the table between its marks."""
    table = "\n".join(lines)
    return re.sub(
        rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda m: f"{m[1]}{table}\n{m[2]}", text, flags=re.DOTALL
    )


def main():
    with tempfile.TemporaryDirectory(prefix="ak") as folder:
        server = EmbeddedServer(home=Path(folder) / "data", settings={"fsync": "off"})
        with server.use() as url:
            grown = growth.table(url)
            with open_memory(url, embeddings=recall.Cached()) as memory:
                found = recall.table(recall.fill(memory.store))
    page = ROOT / "docs/memory.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(put(put(text, "growth", grown), "recall", found), encoding="utf-8")
    sys.stdout.write("\n".join([*grown, "", *found, ""]))


if __name__ == "__main__":
    main()
