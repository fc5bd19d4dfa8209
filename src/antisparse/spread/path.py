"""The exact solution path of one vector, in plain NumPy: the reference solver, to be read beside the paper.

It follows the path of section 2 of the paper from h_1 = ||A'y||_1, where x = 0, down to a given h. Notation:

    t  = ||x||_inf                       infinity norm of x, which grows as h shrinks
    S, s   stuck set and its signs       |x_i| = t          (the paper's I-bar)
    F      free set                      |x_i| < t          (the paper's I-breve)
    c  = A'(y - A x)                     correlations; h v of equation 6

x is optimal at h if and only if c_i = 0 on F, s_i c_i >= 0 on S and ||c||_1 = h. For a fixed partition into S and F
these are linear equations. With w = A_S s and P the projector onto the orthogonal complement of span(A_F), all of these
are linear in t:

    x_F = xi + zeta t      xi  = A_F^+ y      zeta    = -A_F^+ w         (equations 11 to 13)
    c   = nu - g t         nu  = A'P y        g       = A'P w            (equations 14 to 16)
    h   = eta - upsilon t  eta = w'P y        upsilon = ||P w||^2        (equations 17 to 19)

The formulas printed in the paper have slips: equation 13 lacks a transposed A_F, equation 15 has A_F and A_S swapped
inside the projector, equation 16 mixes A_F with xi, and equation 19 keeps x_F where xi belongs. The formulas above are
derived from the optimality conditions, and the tests check the solutions by their certificates.

The paper does not treat dependent columns. A stuck column that comes to lie in span(A_F), such as a duplicate of a free
one, has c_i = 0 from then on, so x_i need not follow t: it can be parked, that is, held at a fixed value.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from antisparse._arrays import Float64Array, float64_array, integer, nonnegative
from antisparse.errors import InputError, StepLimitError
from antisparse.frames import Frame, frame_matrix
from antisparse.spread.plot import Vertices, plot_path
from antisparse.spread.problem import default_step_limit, require_full_ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Move = Literal["freed", "stuck at +t", "stuck at -t", "parked"]


@dataclass(frozen=True)
class Breakpoint:
    """A point where the partition changes: at this h and t, component `index` made the given move.

    "parked" occurs with dependent columns only: the column lies in span(A_F), so the component can keep its value while
    the free components change in its place.
    """

    h: float
    t: float
    index: int
    move: Move


@dataclass(frozen=True)
class Piece:
    """The path between two breakpoints, where the partition is fixed and everything is linear in t."""

    signs: Float64Array  # s on S, 0 elsewhere
    fixed: Float64Array  # the values of parked components, 0 elsewhere
    free: npt.NDArray[np.intp]
    xi: Float64Array
    zeta: Float64Array
    nu: Float64Array
    g: Float64Array
    eta: float
    upsilon: float
    scale: Float64Array  # ||a_i|| ||P w||, an upper bound on |g_i|
    py: Float64Array  # P y
    pw: Float64Array  # P w; the residual is y - A x = P y - t P w
    norms: tuple[float, float]  # ||y||, ||w||

    def h_at(self, t: float) -> float:
        """The h at which ||x||_inf = t."""
        return self.eta - self.upsilon * t

    def t_at(self, h: float) -> float:
        """The t = ||x||_inf at h."""
        return (self.eta - h) / self.upsilon

    def residual_at(self, t: float) -> float:
        """||y - A x|| at t, relative to ||y|| + t ||w||."""
        if not np.isfinite(t):
            return np.inf
        return float(np.linalg.norm(self.py - t * self.pw) / (self.norms[0] + t * self.norms[1]))

    def x_at(self, t: float) -> Float64Array:
        """The representation, of shape (m,), at t."""
        x = self.signs * t + self.fixed
        x[self.free] = np.clip(self.xi + self.zeta * t, -t, t)
        return x


@dataclass(frozen=True)
class Scales:
    """Factors from the scaled problem that was solved to the caller's: `x` for x and t, `h` for h."""

    x: float
    h: float


@dataclass(frozen=True, repr=False)
class SpreadPath:
    """The whole path of one vector, from h_1 down to `h`.

    Attributes
    ----------
    h1 : float
        ``||A.T @ y||_1``; for h >= h1, x = 0.
    h, t : float
        The end of the path.
    breakpoints : tuple of Breakpoint
        In the order of the path: h decreases, t increases.
    pieces : tuple of Piece
        ``pieces[k]`` ends at ``breakpoints[k]``; the last ends at `h`.
    """

    h1: float
    h: float
    t: float
    breakpoints: tuple[Breakpoint, ...]
    pieces: tuple[Piece, ...]
    scales: Scales
    columns: int

    @property
    def x(self) -> Float64Array:
        """The representation at the end of the path."""
        return self.at(self.h)

    def at(self, h: float) -> Float64Array:
        """The spread representation x, of shape (m,), at any h not below the end of the path."""
        h = nonnegative(h, "h")
        if h >= min(self.h1, self.h if self.t == 0 else np.inf):
            return np.zeros(self.columns)
        if h < self.h:
            raise InputError(f"h = {h} lies below the end of the path, {self.h}; call spread_path with a smaller h")
        k = sum(point.h > h for point in self.breakpoints)
        start = self.breakpoints[k - 1].t if k else 0.0
        end = self.breakpoints[k].t if k < len(self.breakpoints) else self.t
        t = self.t
        if h > self.h:  # clipped, because rounding could put t outside its piece
            t = float(np.clip(self.pieces[k].t_at(h / self.scales.h) * self.scales.x, start, end))
        return self.pieces[k].x_at(t / self.scales.x) * self.scales.x

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the components of x against h, within the envelope ``+-||x||_inf``.

        Stuck components lie on the envelope, which is drawn wider the more of them there are; free ones run inside it.
        A hollow circle marks a breakpoint where a component is freed, a filled one a breakpoint where it sticks.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw into; a new figure by default.

        Returns
        -------
        ax : matplotlib.axes.Axes
            ``ax.figure.savefig(name)`` saves the picture.

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed; ``pip install 'antisparse[plot]'`` installs it.
        """
        return plot_path(self._vertices(), ax)

    def _vertices(self) -> Vertices:
        """The path by its vertices: the start, the breakpoints and the end."""
        signs = np.array([piece.signs for piece in self.pieces]).reshape(-1, self.columns)
        free = np.zeros(signs.shape, dtype=bool)
        for k, piece in enumerate(self.pieces):
            free[k, piece.free] = True
        ts = [*(point.t for point in self.breakpoints), self.t][: len(self.pieces)]
        x = [piece.x_at(t / self.scales.x) * self.scales.x for piece, t in zip(self.pieces, ts, strict=True)]
        return Vertices(
            h=np.array([self.h1, *(point.h for point in self.breakpoints), self.h][: len(ts) + 1]),
            t=np.array([0.0, *ts]),
            x=np.array([np.zeros(self.columns), *x]),
            signs=signs.astype(np.int8),
            free=free,
            moved=[point.index for point in self.breakpoints],
            moves=[point.move for point in self.breakpoints],
        )

    def __repr__(self) -> str:
        numbers = f"h1: {self.h1:.4g}, h: {self.h:.4g}, t: {self.t:.4g}, breakpoints: {len(self.breakpoints)}"
        return f"SpreadPath(m: {self.columns}, {numbers})"


def spread_path(y: Any, A: Frame, h: float = 0.0, *, max_steps: int | None = None) -> SpreadPath:
    """The path of ``argmin_x 1/2 ||A x - y||^2 + h ||x||_inf``, from x = 0 down to h.

    Parameters
    ----------
    y : array of shape (d,)
    A : ndarray of shape (d, m) or BlockFrame
        Of full rank. A block frame is treated as one dense matrix.
    h : float
        Absolute, as in the paper. 0 gives the minimum-infinity-norm solution of A x = y.
    max_steps : int, optional
        The largest number of breakpoints allowed; beyond it, `StepLimitError` is raised.

    Returns
    -------
    path : SpreadPath

    Examples
    --------
    >>> import numpy as np
    >>> from antisparse import spread_path
    >>> path = spread_path(np.array([3.0, 1.0]), np.eye(2))
    >>> [(p.h, p.t, p.index, p.move) for p in path.breakpoints]
    [(2.0, 1.0, 1, 'freed')]
    >>> path.at(1.0)
    array([2., 1.])
    """
    rank = require_full_ranks(A)
    A = frame_matrix(A)
    y = float64_array(y, "y", 1)
    d, m = A.shape
    if len(y) != d:
        raise InputError(f"y has {len(y)} entries but A has {d} rows")
    h = nonnegative(h, "h")
    limit = default_step_limit(d, m) if max_steps is None else integer(max_steps, "max_steps", 0)

    # Scale y and A by powers of two, so that dividing is exact. This changes only the scale of x and h.
    y_scale, a_scale = (float(np.ldexp(1.0, int(np.frexp(np.abs(v).max())[1]) - 1)) for v in (y, A))
    y, A = y / y_scale, A / a_scale
    scales = Scales(x=y_scale / a_scale, h=y_scale * a_scale)
    h_target = h / scales.h if 0 < scales.h < np.inf else h / y_scale / a_scale
    norms = np.linalg.norm(A, axis=0)

    # Section 2.2. x = 0: every component is stuck at t = 0, with the sign of its correlation. This is the LSH code.
    correlation = A.T @ y
    h1 = float(np.abs(correlation).sum())
    signs = np.where(correlation < 0, -1.0, 1.0)
    fixed = np.zeros(m)
    free: list[int] = []
    parked: list[int] = []
    riding: list[int] = []  # stuck columns in span(A_F): they are not freed until a column leaves F
    t = 0.0
    breakpoints: list[Breakpoint] = []
    pieces: list[Piece] = []

    def path(t_end: float) -> SpreadPath:
        return SpreadPath(h1 * scales.h, h, t_end * scales.x, tuple(breakpoints), tuple(pieces), scales, m)

    if h_target >= h1:
        return path(0.0)

    def passed(piece: Piece, index: int, move: Move) -> None:
        breakpoints.append(Breakpoint(piece.h_at(t) * scales.h, t * scales.x, index, move))
        pieces.append(piece)

    def depends(index: int, q: Float64Array) -> bool:
        outside = A[:, index] - q @ (q.T @ A[:, index])
        return bool(np.linalg.norm(outside - q @ (q.T @ outside)) <= 1e-11 * norms[index])

    while True:
        piece, q = _piece(y, A, signs, fixed, free)
        index, t_event = _next_event(piece, riding, t, full=len(free) + 1 >= rank)

        # Section 2.5: stop where h reaches the target, or where the residual y - A x = P y - t P w has vanished. There
        # all correlations vanish together and what follows is rounding error, so stopping takes precedence in ties.
        t_target = max(piece.t_at(h_target), t) if piece.upsilon > 0 else np.inf
        vanished = piece.residual_at(t_event) <= 100 * np.finfo(np.float64).eps
        if t_target <= t_event or (h_target == 0 and vanished):
            pieces.append(piece)
            return path(t_target if np.isfinite(t_target) else t)
        if len(breakpoints) >= limit:
            raise StepLimitError(f"y: the path has more than max_steps = {limit} breakpoints; raise max_steps or h", 0)
        t = t_event

        if index in free:
            # A free component has reached +-t: it becomes stuck there.
            sign = float(np.sign(piece.zeta[free.index(index)]))
            free.remove(index)
            q = _basis(A, free)[0]
            signs[index] = sign
            passed(piece, index, "stuck at +t" if sign > 0 else "stuck at -t")
            freed = next((i for i in parked if not depends(i, q)), None)
            if freed is None:
                riding.clear()
            else:  # A parked component takes its place in the free set.
                parked.remove(freed)
                fixed[freed] = 0.0
                free.append(freed)
                riding.append(index)
                passed(piece, freed, "freed")
        elif depends(index, q):
            # This column lies in span(A_F), so its correlation stays 0: park it, and all others that lie there.
            for i in map(int, np.flatnonzero(signs)):
                if i not in riding and depends(i, q):
                    parked.append(i)
                    fixed[i], signs[i] = signs[i] * t, 0.0
                    passed(piece, i, "parked")
        else:
            # A correlation has vanished: the component becomes free.
            free.append(index)
            signs[index] = 0.0
            passed(piece, index, "freed")


def _basis(A: Float64Array, free: list[int]) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Q, R and norms of A_F = Q R diag(norms). Q is an orthonormal basis of span(A_F)."""
    norms = np.linalg.norm(A[:, free], axis=0)
    q, r = np.linalg.qr(A[:, free] / norms)
    return q, r, norms


def _piece(
    y: Float64Array, A: Float64Array, signs: Float64Array, fixed: Float64Array, free: list[int]
) -> tuple[Piece, Float64Array]:
    """The linear formulas of one partition, computed from scratch, and the basis Q of span(A_F)."""
    from scipy.linalg import solve_triangular

    w = A @ signs
    q, r, norms = _basis(A, free)

    def project(v: Float64Array) -> tuple[Float64Array, Float64Array]:
        """P v and A_F^+ v. P is applied twice, because once leaves rounding errors proportional to ||v||."""
        inside = q.T @ v
        outside = v - q @ inside
        outside = outside - q @ (q.T @ outside)
        coefficients = solve_triangular(r, inside) if len(free) else inside
        return outside, coefficients / norms

    py, xi = project(y - A @ fixed)
    pw, minus_zeta = project(w)
    piece = Piece(
        signs=signs.copy(),
        fixed=fixed.copy(),
        free=np.array(free, dtype=np.intp),
        xi=xi,
        zeta=-minus_zeta,
        nu=A.T @ py,
        g=A.T @ pw,
        eta=float(w @ py),
        upsilon=float(pw @ pw),
        scale=np.linalg.norm(A, axis=0) * np.linalg.norm(pw),
        py=py,
        pw=pw,
        norms=(float(np.linalg.norm(y)), float(np.linalg.norm(w))),
    )
    return piece, q


def _next_event(piece: Piece, riding: list[int], now: float, full: bool) -> tuple[int, float]:
    """The component that moves next, and the t at which it does (section 2.4).

    Only components that are about to leave their set count, so one that has just moved cannot undo its move; it may be
    the next to move again, on the other side. If rounding puts an event before the t of `now`, it happens at `now`.
    """
    rounding = 1e-13  # smaller rates count as zero
    with np.errstate(divide="ignore", invalid="ignore"):
        # c_i of a stuck component vanishes: s_i c_i falls at the rate s_i g_i.
        rate = piece.signs * piece.g
        release = np.where(rate > rounding * piece.scale, piece.nu / piece.g, np.inf)
        # A free x_i overtakes t or -t: |x_i| gains on t at the rate |zeta_i| - 1.
        excess = np.abs(piece.zeta) - 1
        stick = np.where(excess > rounding, -np.sign(piece.zeta) * piece.xi / excess, np.inf)
    release[riding] = np.inf
    if full:  # the residual has a fixed direction, so all correlations vanish together at h = 0, and none before
        release[:] = np.inf
    release, stick = np.maximum(release, now), np.maximum(stick, now)
    i, k = int(release.argmin()), int(stick.argmin()) if len(stick) else -1
    if k >= 0 and stick[k] < release[i]:
        return int(piece.free[k]), float(stick[k])
    return i, float(release[i])
