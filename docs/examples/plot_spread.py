"""
The spread representation
=========================

Of all x with A x close to y, the spread representation is the one whose largest entry is smallest: the minimum of
``1/2 ||A x - y||² + h ||x||∞``. This picture shows it for one vector, from large h to none.
"""

# %%
# The solution path
# -----------------
#
# A frame of 48 columns in 16 dimensions has room to write y in many ways. From right to left h falls: the largest
# entry grows (the envelope), and entries stick to plus or minus the largest, or come free again. Every mark is such
# an event.
import numpy as np
from matplotlib import pyplot

from antisparse import spread, spread_path, tight_frame

A = tight_frame(16, 48, seed=0)
Y = np.random.default_rng(0).standard_normal((2000, 16))
Y /= np.linalg.norm(Y, axis=1, keepdims=True)

path = spread_path(Y[0], A)
axes = path.plot()
axes.set_title("All components of one representation, as h goes to 0")

# %%
# What sticks
# -----------
#
# Relative to their largest, most entries are exactly 1 or -1. So their signs say nearly all: this is why a bit an entry
# is a good code. Least squares (A'y, for this frame) spreads nothing.
figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
x = spread(Y, A, h=0.1).x
titles = ("spread representation, h = 0.1 h1", "least squares, A'y")
for panel, values, title in zip(panels, (x, Y @ A), titles, strict=True):
    relative = values / np.abs(values).max(axis=1, keepdims=True)
    panel.hist(relative.ravel(), bins=61, color="#0b5394", weights=np.full(relative.size, 1 / relative.size))
    panel.set_title(title)
    panel.set_xlabel("entry, relative to the largest")
panels[0].set_ylabel("share of the entries")
stuck = (np.abs(x) > (1 - 1e-9) * np.abs(x).max(axis=1, keepdims=True)).mean()
print(f"{stuck:.0%} of the entries are the largest or its negative")

# %%
# What the signs rebuild
# ----------------------
#
# The frame times the signs points back to y. The signs of the spread representation do so better than those of A'y,
# which are the code of locality-sensitive hashing with the same frame.
figure, axes = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
for values, name, colour in ((x, "spread representation", "#0b5394"), (Y @ A, "least squares", "#b45309")):
    rebuilt = np.sign(values) @ A.T
    cosines = (rebuilt * Y).sum(axis=1) / np.linalg.norm(rebuilt, axis=1)
    axes.hist(cosines, bins=60, histtype="step", lw=2, color=colour, label=f"{name}: mean {cosines.mean():.3f}")
axes.set_xlabel("cosine between a vector and what its 48 signs rebuild")
axes.set_ylabel("vectors")
axes.legend(frameon=False)
pyplot.show()
