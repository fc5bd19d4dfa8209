"""LangChain's own standard tests of a vector store: `make test-models`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from antisparse import LearnedEncoder

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
standard = pytest.importorskip(
    "langchain_tests.integration_tests.vectorstores",
    reason="langchain-tests brings plugins of pytest: make test-models",
)

from antisparse.connect.langchain import AntisparseVectorStore  # noqa: E402

SAMPLE = np.random.default_rng(0).standard_normal((500, standard.EMBEDDING_SIZE))


class TestInMemory(standard.VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> AntisparseVectorStore:
        codec = LearnedEncoder(8, metric="cosine", random_state=0).fit(SAMPLE)
        return AntisparseVectorStore.create(self.get_embeddings(), codec)


class TestOnDisk(standard.VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[AntisparseVectorStore]:
        codec = LearnedEncoder(8, metric="cosine", random_state=0).fit(SAMPLE)
        store = AntisparseVectorStore.create(self.get_embeddings(), codec, path=tmp_path / "store")
        yield store
        store.close()
