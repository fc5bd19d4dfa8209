// The fast way to go from one piece of the path to the next: O(|F| m) a step, from the Gram matrix.
//
// With A_F = Q R, it keeps W = A^T Q, N = R^-1, Q^T y and Q^T w, never Q itself. Freeing column j is one step of a
// pivoted Cholesky factorisation of A^T A:
//
//   r = Q^T a_j, row j of W
//   rho^2 = ||P a_j||^2 = G_jj - r.r
//   the new column of W = A^T P a_j / rho = (G_j - W r) / rho
//
// and sticking one is a chain of Givens rotations. rho^2 is a difference, so digits are lost as the columns of F
// come close to dependent: then `release` refuses and the caller turns to orthogonal.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "solver/segment.hpp"

namespace antisparse::ANTISPARSE_ISA {

template <class T>
class GramSegment : public Segment<T> {
 public:
  explicit GramSegment(const Block<T>& b)
      : Segment<T>(b),
        kp_(padded<T>(b.rank)),
        w_((b.mp + strip - 1) / strip * strip * b.rank),
        gram_(b.gram.empty() ? b.mp : 0),
        n_(b.rank * kp_),
        qy_(kp_),
        qw_(kp_),
        r_(kp_),
        beta_(kp_),
        cosine_(kp_),
        sine_(kp_),
        sum_(b.dp),
        slope_(b.mp) {}

  // x = 0: S is everything, s = sign(A^T y), so that the first signs are those of LSH.
  void start(const T* y) {
    const Block<T>& b = this->block;
    this->k = 0;
    for (Aligned<T>* a : {&this->xi, &this->zeta, &qy_, &qw_, &r_}) std::fill_n(a->data(), a->size(), T(0));
    combine<T>(this->nu.data(), nullptr, b.rows.data(), b.mp, y, b.d, b.mp);
    for (std::size_t i = 0; i < b.m; ++i) this->s[i] = this->nu[i] < 0 ? T(-1) : T(1);
    this->h1 = absolute_sum(this->nu.data(), b.mp);
    combine<T>(sum_.data(), nullptr, b.columns.data(), b.dp, this->s.data(), b.m, b.dp);
    combine<T>(this->g.data(), nullptr, b.rows.data(), b.mp, sum_.data(), b.d, b.mp);
    this->scan_stuck();
  }

  bool release(std::size_t j, T) {
    const Block<T>& b = this->block;
    const std::size_t k = this->k, mp = b.mp;
    const T sign = this->s[j];
    if (b.gram.empty()) combine<T>(gram_.data(), nullptr, b.rows.data(), mp, &b.columns[j * b.dp], b.d, mp);
    const T *gram = b.gram.empty() ? gram_.data() : &b.gram[j * mp], *row = w(j);
    T even = 0, odd = 0;  // two sums, so that neither waits long on its last
    for (std::size_t q = 0; q < k; q += 2) {
      const T r0 = row[q * strip], r1 = q + 1 < k ? row[(q + 1) * strip] : T(0);
      r_[q] = -r0;
      r_[q + 1] = -r1;
      even += r0 * r0;
      odd += r1 * r1;
    }
    const T rho2 = gram[j] - (even + odd);
    if (!(rho2 > dependent * gram[j])) return false;
    const T rho = std::sqrt(rho2), inverse = 1 / rho;

    // w loses s_j a_j; P loses the direction q = P a_j / rho: P w changes by -q (q.w), P y by -q (q.y).
    const T qy = this->nu[j] * inverse, qw = this->g[j] * inverse;
    this->s[j] = 0;
    StuckScan<T> stuck;
    std::size_t i = 0;
    for (; i + strip <= mp; i += strip) release_strip<8>(i, gram, inverse, qy, qw, stuck);
    for (; i < mp; i += 2 * Pack<T>::lanes) release_strip<2>(i, gram, inverse, qy, qw, stuck);
    this->stuck = stuck;

    // beta = (-A_F^+ a_j, 1); the new column of N is beta / rho. Q^T w loses s_j Q^T a_j and gains q.w; xi = N Q^T y
    // and zeta = -N Q^T w follow.
    const std::size_t kp = padded<T>(k + 1);
    T *beta = beta_.data(), *r = r_.data(), *column = &n_[k * kp_], *q_w = qw_.data();
    T *xi = this->xi.data(), *zeta = this->zeta.data();
    using V = Pack<T>;
    combine_upper(beta, n_.data(), kp_, r, k, kp);
    beta[k] = 1;
    const T new_qw = qw - sign * rho;
    for (std::size_t i = 0; i < kp; i += V::lanes) {
      const V b = V::load(beta + i), c = V::all(inverse) * b;
      c.store(column + i);
      fma(V::all(sign), V::load(r + i), V::load(q_w + i)).store(q_w + i);
      fma(V::all(qy), c, V::load(xi + i)).store(xi + i);
      fma(V::all(-new_qw), c, fma(V::all(-sign), b, V::load(zeta + i))).store(zeta + i);
    }
    qy_[k] = qy;
    q_w[k] = new_qw;
    zeta[k] = -new_qw * inverse;

    this->free[k] = j;
    this->k = k + 1;
    return true;
  }

  void stick(std::size_t place, T sign, T) {
    const Block<T>& b = this->block;
    const std::size_t k = this->k, mp = b.mp, turns = k - 1 - place, i = this->free[place];

    // Rotations of neighbouring columns of Q that leave index i in the last one alone: they gather row `place` of N
    // into its last entry, 1 / rho. What is gathered so far is the norm of the row's first entries, so the angles need
    // no chain of divisions.
    T *cosine = cosine_.data(), *sine = sine_.data(), *next = beta_.data();
    T norm2 = n_[place * kp_ + place] * n_[place * kp_ + place];
    for (std::size_t q = 0; q < turns; ++q) {
      next[q] = n_[(place + q + 1) * kp_ + place];
      sine[q] = norm2;
      norm2 += next[q] * next[q];
      cosine[q] = norm2;
    }
    for (std::size_t q = 0; q < turns; ++q) {
      const T root = std::sqrt(cosine[q]);
      sine[q] = std::sqrt(sine[q]) / root;
      cosine[q] = next[q] / root;
    }
    for (std::size_t j = 0; j < mp; j += strip)
      rotate_chain(w(j) + place * strip, strip, cosine, sine, turns, std::min(strip, mp - j));
    rotate_chain(&n_[place * kp_], kp_, cosine, sine, turns, padded<T>(k));
    T qy = qy_[place], qw = qw_[place];
    for (std::size_t q = 0; q < turns; ++q) {
      const T c = cosine[q], s = sine[q], next_y = qy_[place + q + 1], next_w = qw_[place + q + 1];
      qy_[place + q] = s * next_y - c * qy;
      qw_[place + q] = s * next_w - c * qw;
      qy = s * qy + c * next_y;
      qw = s * qw + c * next_w;
    }
    const T rho = 1 / std::sqrt(norm2);

    // w gains sign a_i; P regains q: P w changes by q (q.w + sign rho), P y by q (q.y).
    for (std::size_t j = 0; j < mp; j += strip) {
      const T* last = w(j) + (k - 1) * strip;
      axpy(&this->nu[j], qy, last, std::min(strip, mp - j));
      axpy(&this->g[j], qw + sign * rho, last, std::min(strip, mp - j));
    }

    // Index i leaves F: its row leaves N, the last direction leaves Q. Zeros stay past the end.
    for (std::size_t q = place; q + 1 < k; ++q) {
      T* column = &n_[q * kp_];
      std::copy(column + place + 1, column + k, column + place);
      column[k - 1] = 0;
    }
    std::fill_n(&n_[(k - 1) * kp_], k, T(0));
    std::copy(this->free.begin() + place + 1, this->free.begin() + k, this->free.begin() + place);
    qy_[k - 1] = qw_[k - 1] = 0;
    r_[k - 1] = 0;
    const T* row = w(i);
    for (std::size_t q = 0; q + 1 < k; ++q) qw_[q] += sign * row[q * strip];
    this->k = k - 1;
    this->s[i] = sign;

    combine_upper(this->xi.data(), n_.data(), kp_, qy_.data(), k - 1, padded<T>(k));
    combine_upper(this->zeta.data(), n_.data(), kp_, qw_.data(), k - 1, padded<T>(k));
    for (std::size_t q = 0; q + 1 < k; ++q) this->zeta[q] = -this->zeta[q];
    this->scan_stuck();
  }

  // z = P w, the direction in which the residual shrinks: A times the slope of x.
  void dual(T* z) {
    const Block<T>& b = this->block;
    std::copy_n(this->s.data(), b.mp, slope_.data());
    for (std::size_t i = 0; i < this->k; ++i) slope_[this->free[i]] = this->zeta[i];
    combine<T>(z, nullptr, b.columns.data(), b.dp, slope_.data(), b.m, b.dp);
  }

  T sign(std::size_t i) const { return this->s[i]; }
  T fixed(std::size_t) const { return 0; }

 private:
  // ||P a_j||^2 / ||a_j||^2 below which too few of its digits are right.
  static constexpr T dependent = sizeof(T) == 4 ? T(1e-4) : T(1e-7);

  // From column i on, a few packs in one pass: the new column of W, and with it nu, g and the scan of S.
  template <std::size_t packs>
  void release_strip(std::size_t i, const T* gram, T inverse, T qy, T qw, StuckScan<T>& stuck) {
    using V = Pack<T>;
    const std::size_t k = this->k;
    const T *w = this->w(i), *r = r_.data(), *s = this->s.data() + i;
    T *column = this->w(i) + k * strip, *nu = this->nu.data() + i, *g = this->g.data() + i;
    V acc[packs];
    for (std::size_t p = 0; p < packs; ++p) acc[p] = V::load(gram + i + p * V::lanes);
    for (std::size_t q = 0; q < k; ++q)
      for (std::size_t p = 0; p < packs; ++p) acc[p] = fma(V::all(r[q]), V::load(w + q * strip + p * V::lanes), acc[p]);
    V at = V::count() + V::all(static_cast<T>(i));
    const auto finish = [&](std::size_t p, std::size_t chain) {
      const V c = V::all(inverse) * acc[p];
      const V new_nu = fma(V::all(-qy), c, V::load(nu + p * V::lanes));
      const V new_g = fma(V::all(-qw), c, V::load(g + p * V::lanes));
      c.store(column + p * V::lanes);
      new_nu.store(nu + p * V::lanes);
      new_g.store(g + p * V::lanes);
      stuck.offer(chain, V::load(s + p * V::lanes), new_nu, new_g, at);
      at = at + V::all(T(V::lanes));
    };
    for (std::size_t p = 0; p < packs; p += 2) {
      finish(p, 0);
      finish(p + 1, 1);
    }
  }

  // W is cut into strips of rows that fit the registers, each stored column by column; w(i) + q * strip is entry i of
  // column q.
  static constexpr std::size_t strip = 8 * Pack<T>::lanes;
  T* w(std::size_t i) { return w_.data() + i / strip * strip * this->block.rank + i % strip; }

  std::size_t kp_;
  Aligned<T> w_, gram_;
  Aligned<T> n_;        // N: columns of kp_, upper triangular
  Aligned<T> qy_, qw_;  // Q^T y, Q^T w
  Aligned<T> r_, beta_, cosine_, sine_, sum_, slope_;
};

}  // namespace antisparse::ANTISPARSE_ISA
