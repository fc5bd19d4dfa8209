"""
Recall against bytes
====================

How many bytes a vector should have is the one thing to choose. This picture shows what each finds, on sentences
that are on every machine which has this library.
"""

# %%
# The vectors have 128 dimensions, 512 bytes as floats. Two measures: the true nearest neighbour is among the first
# ten results (1@10), and the share of the ten true nearest that are among the first ten (10@10).
from matplotlib import pyplot

from antisparse import Index, datasets
from antisparse.evaluation import exact_neighbors, intersection_recall, recall_at

_, _, vectors = datasets.sentences()
queries, base = vectors[::20], vectors[1::3]
truth = exact_neighbors(base, queries, k=10, metric="cosine")[1]

sizes = [4, 8, 16, 24]
first, ten = [], []
for n_bytes in sizes:
    index = Index.build(base, n_bytes, metric="cosine", effort=1, random_state=0)
    ids = index.search(queries, k=10)[1]
    first.append(recall_at(ids, truth, 10))
    ten.append(intersection_recall(ids, truth, 10))

figure, axes = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
axes.plot(sizes, first, "o-", color="#0b5394", label="1@10")
axes.plot(sizes, ten, "s--", color="#b45309", label="10@10")
axes.set_xlabel("bytes of a vector, all but its id")
axes.set_ylabel("recall")
axes.set_xticks(sizes)
axes.set_ylim(0, 1.02)
axes.grid(alpha=0.3)
axes.legend(frameon=False, loc="lower right")
pyplot.show()

# %%
# ``antisparse tune`` draws this for vectors of your own, and chooses.
