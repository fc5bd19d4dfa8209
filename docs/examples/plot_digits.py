"""
A map of digits, from their codes
=================================

scikit-learn's t-SNE takes neighbours that something else has found. Here they are found from 16 bytes a picture,
beside those from the 256 bytes that the floats take.
"""

# %%
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline

from antisparse.connect.sklearn import CodeNeighborsTransformer

X, digits = load_digits(return_X_y=True)  # handwritten digits, 8 x 8 pixels
X, digits = X[:400].astype("float32"), digits[:400]

graphs = {
    "from 16 bytes of code": CodeNeighborsTransformer(n_neighbors=46, n_bytes=16, random_state=0),
    "from 256 bytes of floats": KNeighborsTransformer(n_neighbors=46, mode="distance"),
}
figure, panels = pyplot.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for panel, (name, graph) in zip(panels, graphs.items(), strict=True):
    tsne = TSNE(perplexity=15, metric="precomputed", init="random", random_state=0, max_iter=400)
    places = make_pipeline(graph, tsne).fit_transform(X)
    for digit in range(10):
        here = places[digits == digit]
        panel.scatter(*here.T, s=14, alpha=0.25, color=f"C{digit}", linewidths=0)
        panel.text(*here.mean(axis=0), str(digit), fontsize=14, weight="bold", ha="center", va="center")
    panel.set_title(name)
    panel.set_xticks([])
    panel.set_yticks([])
pyplot.show()

# %%
# The clusters are the same. t-SNE asks for three times the perplexity of neighbours, and one more. What else takes
# such a graph, and how well a classifier does on it, is on the page on scikit-learn.
