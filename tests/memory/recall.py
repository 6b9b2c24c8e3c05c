"""How often a search finds the note a question is about. Run it to see the table; the tests use its parts."""

import sys
from pathlib import Path

from langgraph.store.base import PutOp

from agentkit.memory import InMemoryStore, OfflineEmbeddings

NOTES = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_name("recall_notes.tsv").read_text(encoding="utf-8").splitlines()
]
LANGUAGES = {"en": "English", "ko": "Korean", "zh": "Chinese"}
WAYS = ("text", "vector", "both")


class Cached(OfflineEmbeddings):
    """Makes the vector of each question once."""

    def __init__(self):
        self.made = {}

    def embed_query(self, text):
        if text not in self.made:
            self.made[text] = super().embed_query(text)
        return self.made[text]


def fill(store):
    """All notes of all languages in one namespace, as one person's memories."""
    store.batch([PutOp(("notes", "ann"), f"{n:03}", {"text": note}) for n, (_, note, _) in enumerate(NOTES)])
    return store


def recall(store, by, language=None, at=5):
    """The share of questions whose note is among the first `at` that are found."""
    asked = [(n, question) for n, (lang, _, question) in enumerate(NOTES) if language in (None, lang)]
    hits = sum(
        f"{n:03}" in {item.key for item in store.find(("notes", "ann"), question, by=by, limit=at)}
        for n, question in asked
    )
    return hits / len(asked)


def table(store, ways=WAYS):
    """The figures, as lines of Markdown."""
    lines = [f"| recall@5 | {' | '.join(ways)} |", "|---|" + "---|" * len(ways)]
    for language, name in (*LANGUAGES.items(), (None, f"all {len(NOTES)}")):
        figures = (f"{100 * recall(store, by, language):.0f} %" for by in ways)
        lines.append(f"| {name} | {' | '.join(figures)} |")
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join(table(fill(InMemoryStore(embeddings=Cached())))) + "\n")
