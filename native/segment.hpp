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

#include "aligned.hpp"
#include "frame.hpp"
#include "linear.hpp"

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

// What every way of updating a piece (gram.hpp, orthogonal.hpp) keeps up to date, and all that next_event() reads.
template <class T>
struct Segment {
  const Block<T>& block;
  Aligned<T> s, nu, g;           // by column; s = 0 off S and on the padding
  Aligned<T> xi, zeta;           // by place in `free`, zero past k
  std::vector<std::size_t> free;  // F, in the order of the factor
  std::size_t k = 0;             // |F|
  T eta = 0, upsilon = 0;
  T h1 = 0;  // ||A^T y||_1

  explicit Segment(const Block<T>& b)
      : block(b), s(b.mp), nu(b.mp), g(b.mp), xi(padded<T>(b.rank)), zeta(padded<T>(b.rank)), free(b.rank) {}

  T h(T t) const { return eta - upsilon * t; }
};

// The least of candidates and where it stands; of equal ones the first.
template <class T>
struct Least {
  Pack<T> value = Pack<T>::all(std::numeric_limits<T>::infinity());
  Pack<T> place = Pack<T>::all(0);
  void offer(Pack<T> candidate, Pack<T> at) {
    const Pack<T> better = candidate < value;
    value = select(better, candidate, value);
    place = select(better, at, place);
  }
  void read(T& t, std::size_t& at) const {
    alignas(64) T values[Pack<T>::lanes], places[Pack<T>::lanes];
    value.store(values);
    place.store(places);
    t = values[0];
    T best = places[0];
    for (std::size_t i = 1; i < Pack<T>::lanes; ++i)
      if (values[i] < t || (values[i] == t && places[i] < best)) {
        t = values[i];
        best = places[i];
      }
    at = static_cast<std::size_t>(best);
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
  const V zero = V::all(0), one = V::all(1), never = V::all(std::numeric_limits<T>::infinity());
  const V step = V::all(static_cast<T>(lanes));

  Least<T> release;
  V eta = zero, upsilon = zero, at = V::count();
  for (std::size_t i = 0; i < seg.block.mp; i += lanes, at = at + step) {
    const V s = V::load(&seg.s[i]);
    const V sn = s * V::load(&seg.nu[i]), sg = s * V::load(&seg.g[i]);
    eta = eta + sn;
    upsilon = upsilon + sg;
    release.offer(select(zero < sg, sn / sg, never), at);
  }
  seg.eta = sum(eta);
  seg.upsilon = sum(upsilon);

  Least<T> stick;
  at = V::count();
  for (std::size_t i = 0; i < seg.k; i += lanes, at = at + step) {
    const V zeta = V::load(&seg.zeta[i]), xi = V::load(&seg.xi[i]);
    const V outward = select(zeta < zero, xi, zero - xi), excess = abs(zeta) - one;
    stick.offer(select(zero < excess, outward / excess, never), at);
  }

  Event<T> event;
  std::size_t place;
  T t;
  // With |F| = rank - 1 the residual lives on a line: all correlations vanish together, at h = 0 and not before.
  if (seg.k + 1 < seg.block.rank) {
    release.read(t, place);
    if (t < event.t) event = {t, Move::release, place, 0};
  }
  stick.read(t, place);
  if (t < event.t) event = {t, Move::stick, place, seg.zeta[place] < 0 ? T(-1) : T(1)};
  if (event.t < now) event.t = now;
  return event;
}

}  // namespace antisparse::ANTISPARSE_ISA
