// The fast way to go from one piece of the path to the next: O(|F| m) a step, from the Gram matrix.
//
// With A_F = Q R, it keeps W = A^T Q, N = R^-1, Q^T y and Q^T w, never Q itself. Freeing column j is one step of a
// pivoted Cholesky factorisation of A^T A:
//
//   r = Q^T a_j (row j of W)    v = A^T P a_j = G_j - W r    rho^2 = ||P a_j||^2 = v_j    new column of W: v / rho
//
// and sticking one is a chain of Givens rotations. rho^2 is a difference, so digits are lost as the columns of F
// come close to dependent: then `release` refuses and the caller turns to orthogonal.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "segment.hpp"

namespace antisparse::ANTISPARSE_ISA {

template <class T>
class GramSegment : public Segment<T> {
 public:
  explicit GramSegment(const Block<T>& b)
      : Segment<T>(b),
        kp_(padded<T>(b.rank)),
        w_(b.rank * b.mp),
        n_(b.rank * kp_),
        qy_(kp_),
        qw_(kp_),
        r_(kp_),
        beta_(kp_),
        cosine_(kp_),
        sine_(kp_),
        sum_(b.dp) {}

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
  }

  bool release(std::size_t j, T) {
    const Block<T>& b = this->block;
    const std::size_t k = this->k, mp = b.mp;
    const T sign = this->s[j];
    T* v = &w_[k * mp];
    for (std::size_t q = 0; q < k; ++q) r_[q] = -w_[q * mp + j];
    if (b.gram.empty()) {
      combine<T>(v, nullptr, b.rows.data(), mp, &b.columns[j * b.dp], b.d, mp);
      const T norm2 = v[j];
      combine<T>(v, v, w_.data(), mp, r_.data(), k, mp);
      if (!(v[j] > dependent * norm2)) return false;
    } else {
      combine<T>(v, &b.gram[j * mp], w_.data(), mp, r_.data(), k, mp);
      if (!(v[j] > dependent * b.gram[j * mp + j])) return false;
    }
    const T rho = std::sqrt(v[j]), inverse = 1 / rho;

    // w loses s_j a_j; P loses the direction q = P a_j / rho: P w changes by -q (q.w), P y by -q (q.y).
    using V = Pack<T>;
    const T qy = this->nu[j] * inverse, qw = this->g[j] * inverse;
    T *nu = this->nu.data(), *g = this->g.data();
    for (std::size_t i = 0; i < mp; i += V::lanes) {
      const V column = V::all(inverse) * V::load(v + i);
      column.store(v + i);
      fma(V::all(-qy), column, V::load(nu + i)).store(nu + i);
      fma(V::all(-qw), column, V::load(g + i)).store(g + i);
    }

    // beta = (-A_F^+ a_j, 1); the new column of N is beta / rho. Q^T w loses s_j Q^T a_j and gains q.w; xi = N Q^T y
    // and zeta = -N Q^T w follow.
    const std::size_t kp = padded<T>(k + 1);
    T *beta = beta_.data(), *r = r_.data(), *column = &n_[k * kp_], *q_w = qw_.data();
    T *xi = this->xi.data(), *zeta = this->zeta.data();
    combine<T>(beta, nullptr, n_.data(), kp_, r, k, kp);
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

    this->s[j] = 0;
    this->free[k] = j;
    this->k = k + 1;
    return true;
  }

  void stick(std::size_t place, T sign, T) {
    const Block<T>& b = this->block;
    const std::size_t k = this->k, mp = b.mp, turns = k - 1 - place, i = this->free[place];

    // Rotations of neighbouring columns of Q that leave index i in the last one alone: they gather row `place` of N
    // into its last entry, 1 / rho. carry_q is the norm of the row up to q, so the angles need no chain of divisions.
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
    rotate_chain(&w_[place * mp], mp, cosine, sine, turns, mp);
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
    const T* last = &w_[(k - 1) * mp];
    axpy(this->nu.data(), qy, last, mp);
    axpy(this->g.data(), qw + sign * rho, last, mp);

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
    for (std::size_t q = 0; q + 1 < k; ++q) qw_[q] += sign * w_[q * mp + i];
    this->k = k - 1;
    this->s[i] = sign;

    combine_two(this->xi.data(), this->zeta.data(), n_.data(), kp_, qy_.data(), qw_.data(), k - 1, padded<T>(k));
    for (std::size_t q = 0; q + 1 < k; ++q) this->zeta[q] = -this->zeta[q];
  }

  T sign(std::size_t i) const { return this->s[i]; }
  T fixed(std::size_t) const { return 0; }

 private:
  // ||P a_j||^2 / ||a_j||^2 below which too few of its digits are right.
  static constexpr T dependent = sizeof(T) == 4 ? T(1e-4) : T(1e-7);

  std::size_t kp_;
  Aligned<T> w_, n_;    // W: columns of mp; N: columns of kp_, upper triangular
  Aligned<T> qy_, qw_;  // Q^T y, Q^T w
  Aligned<T> r_, beta_, cosine_, sine_, sum_;
};

}  // namespace antisparse::ANTISPARSE_ISA
