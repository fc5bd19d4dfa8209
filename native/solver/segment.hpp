// One linear piece of the solution path, and where it ends.
//
// Stuck set S with signs s (|x_i| = t), free set F. With P the projector onto the complement of span(A_F) and
// w = A_S s, everything on the piece is linear in t = ||x||_inf (section 2 of the paper, in position form):
//
//   x_F = xi + zeta t      xi = A_F^+ y        zeta = -A_F^+ w
//   c   = nu - g t         nu = A^T P y        g    = A^T P w          c = A^T (y - A x)
//   h   = eta - upsilon t  eta = w.P y         upsilon = ||P w||^2     h = ||c||_1
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "solver/frame.hpp"

namespace antisparse::ANTISPARSE_ISA {

enum class Move { none, release, stick };

// The next change of the partition: `release` frees the stuck index `at`; `stick` fixes free[at] at sign * t.
template <class T>
struct Event {
  T t = std::numeric_limits<T>::infinity();
  Move move = Move::none;
  std::size_t at = 0;
  T sign = 0;
};

// The least of the fractions a / b with b > 0, and where it stands; of equal ones the first. Compared by cross
// multiplication, as divisions would take most of the search.
template <class T>
struct Least {
  Pack<T> a = Pack<T>::all(1), b = Pack<T>::all(0), place = b;  // 1 / 0: none yet
  void offer(Pack<T> numerator, Pack<T> denominator, Pack<T> at) {
    const Pack<T> zero = Pack<T>::all(0), valid = zero < denominator;
    numerator = select(valid, numerator, Pack<T>::all(1));
    denominator = select(valid, denominator, zero);
    const Pack<T> better = numerator * b < a * denominator;
    a = select(better, numerator, a);
    b = select(better, denominator, b);
    place = select(better, at, place);
  }
  // The lesser of the two, lane by lane.
  Least merged(const Least& other) const {
    Least both = *this;
    both.offer(other.a, other.b, other.place);
    return both;
  }
  void read(T& t, std::size_t& at) const {
    const Pack<T> never = Pack<T>::all(std::numeric_limits<T>::infinity());
    const Pack<T> value = select(Pack<T>::all(0) < b, a / b, never);
    t = least(value);
    at = static_cast<std::size_t>(least(select(Pack<T>::all(t) < value, never, place)));
  }
};

// The sums and the first release over the stuck components: eta, upsilon, and the least nu_i / g_i with s_i g_i > 0.
// Two chains of comparisons side by side, since each waits on its last.
template <class T>
struct StuckScan {
  Least<T> least[2];
  Pack<T> eta = Pack<T>::all(0), upsilon = eta;
  void offer(std::size_t chain, Pack<T> s, Pack<T> nu, Pack<T> g, Pack<T> at) {
    const Pack<T> sn = s * nu, sg = s * g;
    eta = eta + sn;
    upsilon = upsilon + sg;
    least[chain].offer(sn, sg, at);
  }
};

// What every way of updating a piece (gram.hpp, orthogonal.hpp) keeps up to date, and all that next_event() reads.
template <class T>
struct Segment {
  const Block<T>& block;
  Aligned<T> s, nu, g;            // by column; s = 0 off S and on the padding
  Aligned<T> xi, zeta;            // by place in `free`, zero past k
  std::vector<std::size_t> free;  // F, in the order of the factor
  std::size_t k = 0;              // |F|
  StuckScan<T> stuck;             // of these s, nu and g
  T eta = 0, upsilon = 0;
  T h1 = 0;  // ||A^T y||_1

  explicit Segment(const Block<T>& b)
      : block(b), s(b.mp), nu(b.mp), g(b.mp), xi(padded<T>(b.rank)), zeta(padded<T>(b.rank)), free(b.rank) {}

  T h(T t) const { return eta - upsilon * t; }

  void scan_stuck() {
    using V = Pack<T>;
    stuck = {};
    V at = V::count();
    for (std::size_t i = 0; i < block.mp; i += 2 * V::lanes)
      for (std::size_t chain = 0; chain < 2; ++chain, at = at + V::all(T(V::lanes))) {
        const std::size_t j = i + chain * V::lanes;
        stuck.offer(chain, V::load(&s[j]), V::load(&nu[j]), V::load(&g[j]), at);
      }
  }
};

// The end of the piece, and its eta and upsilon. Two events break it: a correlation c_i of S vanishes (s_i g_i > 0,
// at t = nu_i / g_i), or a free x_i overtakes +-t (|zeta_i| > 1, at t = -sign(zeta_i) xi_i / (|zeta_i| - 1)). An index
// that has just moved leads inwards by these signs, so it never undoes its move. A time that rounding puts before
// the present counts as the present.
template <class T>
Event<T> next_event(Segment<T>& seg, T now) {
  using V = Pack<T>;
  constexpr std::size_t lanes = V::lanes;
  const V zero = V::all(0), one = V::all(1);
  const V step = V::all(static_cast<T>(lanes));

  seg.eta = sum(seg.stuck.eta);
  seg.upsilon = sum(seg.stuck.upsilon);

  const T *zetas = seg.zeta.data(), *xis = seg.xi.data();
  Least<T> stick[2];
  V at = V::count();
  for (std::size_t i = 0; i < seg.k; i += 2 * lanes)
    for (std::size_t chain = 0; chain < 2; ++chain, at = at + step) {
      const V zeta = V::load(zetas + i + chain * lanes), xi = V::load(xis + i + chain * lanes);
      stick[chain].offer(select(zeta < zero, xi, zero - xi), abs(zeta) - one, at);
    }

  Event<T> event;
  std::size_t place;
  T t;
  // With |F| = rank - 1 the residual lives on a line: all correlations vanish together, at h = 0 and not before.
  if (seg.k + 1 < seg.block.rank) {
    seg.stuck.least[0].merged(seg.stuck.least[1]).read(t, place);
    if (t < event.t) event = {t, Move::release, place, 0};
  }
  stick[0].merged(stick[1]).read(t, place);
  if (t < event.t) event = {t, Move::stick, place, seg.zeta[place] < 0 ? T(-1) : T(1)};
  if (event.t < now) event.t = now;
  return event;
}

}  // namespace antisparse::ANTISPARSE_ISA
