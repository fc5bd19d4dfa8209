"""
Three searches, and how much more bits find
===========================================

Codes of signs can be searched in three ways: bits against bits (NN_b, Hamming distance), the real numbers of the
query against bits (NN_a), and the query against the vectors that the codes rebuild (NN_e). This is Figure 1 of the
paper, small.
"""

# %%
# The set is the paper's: points drawn uniformly on a sphere of 16 dimensions. A query's true nearest neighbour is
# found if it is among the first ten results (1@10).
from matplotlib import pyplot

from antisparse import AntiSparseEncoder, CodeBase, LSHEncoder, datasets
from antisparse.evaluation import exact_neighbors, recall_at

data = datasets.synthetic(4000, queries=400, random_state=0)
truth = exact_neighbors(data.base, data.query, k=1)[1]
bits = [16, 24, 32, 48, 64, 96]
searches = {
    "NN_b": {"method": "hamming"},
    "NN_a": {"method": "asymmetric"},
    "NN_e": {"method": "reconstruction"},
}


def recalls(encoder, search):
    """1@10 at every number of bits."""
    found = []
    for m in bits:
        codec = encoder(m, random_state=0).fit(data.learn).codec_
        ids = CodeBase(codec, codec.encode(data.base)).search(data.query, k=10, **search)[1]
        found.append(recall_at(ids, truth, 10))
    return found


figure, axes = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
for (name, search), marker in zip(searches.items(), "so^", strict=True):
    axes.plot(bits, recalls(AntiSparseEncoder, search), marker + "-", color="#0b5394", label=f"anti-sparse, {name}")
axes.plot(bits, recalls(LSHEncoder, searches["NN_b"]), "x--", color="#b45309", label="LSH with a tight frame, NN_b")
axes.set_xlabel("bits of a code")
axes.set_ylabel("1@10: share of queries whose\nnearest neighbour is found")
axes.set_xticks(bits)
axes.grid(alpha=0.3)
axes.legend(frameon=False)
pyplot.show()

# %%
# With as many bits as dimensions anti-sparse codes and LSH are the same. With more, the frame has room, and
# spreading pays. The search by what codes rebuild finds most, from the same bits. ``antisparse paper`` runs the
# experiment at its full size.
