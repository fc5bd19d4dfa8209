// The sure way to go from one piece of the path to the next: A_F = Q R with Q kept orthonormal to working precision.
//
// Nothing is carried from piece to piece but the partition and the factor: w, P y, P w, xi and zeta are formed afresh,
// so errors do not accumulate, and cond(A_F) enters once, not squared as through the Gram matrix.
//
// A stuck column that comes to lie in span(A_F) (a duplicate of a free one, say) has c_i = 0 from then on, so x_i need
// not follow t: it is parked at a fixed value, until a column leaves F and it can take its place. The one that left is
// then stuck but lies in the span, and rides along: no event of its own counts until a column leaves F for good.
#pragma once

#include <algorithm>
#include <cmath>

#include "solver/segment.hpp"

namespace antisparse::ANTISPARSE_ISA {

// sqrt(a^2 + b^2), the same on every machine: the standard library's own may differ in its last bit.
inline double length(double a, double b) {
  int exponent = 0;
  std::frexp(std::max(std::abs(a), std::abs(b)), &exponent);
  a = std::ldexp(a, -exponent);
  b = std::ldexp(b, -exponent);
  return std::ldexp(std::sqrt(std::fma(a, a, b * b)), exponent);
}

class OrthogonalSegment : public Segment<double> {
 public:
  explicit OrthogonalSegment(const Block<double>& b)
      : Segment<double>(b),
        y_(b.dp),
        sign_(b.mp),
        fixed_(b.mp),
        q_(b.rank * b.dp),
        rp_(padded<double>(b.rank)),
        r_(b.rank * rp_),
        w_(b.dp),
        py_(b.dp),
        pw_(b.dp),
        qy_(rp_),
        qw_(rp_),
        column_(rp_),
        correction_(rp_),
        spare_(b.dp),
        norm_(b.m) {
    for (std::size_t j = 0; j < b.m; ++j) norm_[j] = norm(&b.columns[j * b.dp]);
  }

  void start(const double* y) {
    k = 0;
    std::copy_n(y, block.dp, y_.data());
    std::fill_n(fixed_.data(), block.mp, 0.0);
    parked_.clear();
    combine<double>(nu.data(), nullptr, block.rows.data(), block.mp, y, block.d, block.mp);
    for (std::size_t i = 0; i < block.m; ++i) s[i] = sign_[i] = nu[i] < 0 ? -1 : 1;
    h1 = absolute_sum(nu.data(), block.mp);
    refresh();
  }

  bool release(std::size_t j, double t) {
    if (append(j)) {
      s[j] = sign_[j] = 0;
    } else {
      // With column j, park all those whose correlations have vanished with its own.
      const double py = norm(py_.data()), pw = norm(pw_.data());
      for (std::size_t i = 0; i < block.m; ++i) {
        const bool vanished = std::abs(nu[i]) <= 1e-9 * norm_[i] * py && std::abs(g[i]) <= 1e-9 * norm_[i] * pw;
        if (s[i] == 0 || !(i == j || (vanished && depends(i)))) continue;
        park(i, s[i] * t);
      }
    }
    refresh();
    return true;
  }

  void stick(std::size_t place, double sign, double) {
    const std::size_t i = free[place];
    // Column `place` leaves R, which becomes Hessenberg; rotations of neighbouring rows, and of the columns of Q,
    // make it triangular again.
    for (std::size_t c = place; c + 1 < k; ++c) std::copy_n(&r_[(c + 1) * rp_], c + 2, &r_[c * rp_]);
    for (std::size_t q = place; q + 1 < k; ++q) {
      const double a = r_[q * rp_ + q], b = r_[q * rp_ + q + 1], root = length(a, b), c = a / root, t = b / root;
      for (std::size_t column = q; column + 1 < k; ++column) {
        double* pair = &r_[column * rp_ + q];
        // Fused where it is written: GCC fuses the plain form, for some instruction sets, whatever it was told.
        const double u = pair[0], v = pair[1];
        pair[0] = std::fma(c, u, t * v);
        pair[1] = std::fma(c, v, -(t * u));
      }
      r_[q * rp_ + q + 1] = 0;
      double *qu = &q_[q * block.dp], *qv = qu + block.dp;
      for (std::size_t l = 0; l < block.dp; ++l) {
        const double u = qu[l], v = qv[l];
        qu[l] = c * u + t * v;
        qv[l] = c * v - t * u;
      }
    }
    std::copy(free.begin() + place + 1, free.begin() + k, free.begin() + place);
    --k;
    sign_[i] = sign;
    auto spare = std::find_if(parked_.begin(), parked_.end(), [&](std::size_t j) { return append(j); });
    if (spare == parked_.end()) {
      std::copy_n(sign_.data(), block.mp, s.data());
    } else {
      fixed_[*spare] = 0;
      parked_.erase(spare);
    }
    refresh();
  }

  // The same partition for another y.
  void set_vector(const double* y) {
    std::copy_n(y, block.dp, y_.data());
    refresh();
  }

  // x += A_F^+ residual on F: one step of iterative refinement, which makes A_F^T (y - A x) as small as it can be.
  void refine(double* x, const double* residual) {
    std::copy_n(residual, block.dp, py_.data());
    project(py_.data(), qy_.data());
    solve(qy_.data(), xi.data());
    for (std::size_t i = 0; i < k; ++i) x[free[i]] += xi[i];
  }

  // z = P w, the direction in which the residual shrinks.
  void dual(double* z) const { std::copy_n(pw_.data(), block.dp, z); }

  double sign(std::size_t i) const { return sign_[i]; }
  double fixed(std::size_t i) const { return fixed_[i]; }

 private:
  // ||P a_j|| / ||a_j|| below which a_j is taken to lie in span(A_F).
  static constexpr double dependent = 1e-11;

  double norm(const double* v) const { return std::sqrt(dot(v, v, block.dp)); }

  void park(std::size_t i, double value) {
    s[i] = sign_[i] = 0;
    fixed_[i] = value;
    parked_.push_back(i);
  }

  // The part of column j outside span(A_F), into spare_: its norm, or 0 where only rounding is left.
  double outside(std::size_t j) {
    double* q = spare_.data();
    std::copy_n(&block.columns[j * block.dp], block.dp, q);
    project(q, column_.data());
    const double rho = norm(q);
    return rho > dependent * norm_[j] ? rho : 0;
  }

  bool depends(std::size_t j) { return outside(j) == 0; }

  // Column j joins F and the factor. False, and nothing done, where it depends on A_F.
  bool append(std::size_t j) {
    const double rho = outside(j);
    if (rho == 0) return false;
    for (std::size_t i = 0; i < block.dp; ++i) q_[k * block.dp + i] = spare_[i] / rho;
    std::copy_n(column_.data(), k, &r_[k * rp_]);
    r_[k * rp_ + k] = rho;
    free[k++] = j;
    return true;
  }

  // v <- P v, coefficients <- Q^T v. Twice, since once may leave a part of size eps |v| in span(Q).
  void project(double* v, double* coefficients) {
    std::fill_n(coefficients, rp_, 0.0);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t q = 0; q < k; ++q) correction_[q] = -dot(&q_[q * block.dp], v, block.dp);
      combine<double>(v, v, q_.data(), block.dp, correction_.data(), k, block.dp);
      for (std::size_t q = 0; q < k; ++q) coefficients[q] -= correction_[q];
    }
  }

  // R out = rhs, by back substitution.
  void solve(const double* rhs, double* out) {
    std::copy_n(rhs, k, out);
    for (std::size_t c = k; c-- > 0;) {
      out[c] /= r_[c * rp_ + c];
      for (std::size_t i = 0; i < c; ++i) out[i] -= out[c] * r_[c * rp_ + i];
    }
  }

  void refresh() {
    combine<double>(w_.data(), nullptr, block.columns.data(), block.dp, sign_.data(), block.m, block.dp);
    std::copy_n(y_.data(), block.dp, py_.data());
    for (std::size_t i : parked_) axpy(py_.data(), -fixed_[i], &block.columns[i * block.dp], block.dp);
    std::copy_n(w_.data(), block.dp, pw_.data());
    project(py_.data(), qy_.data());
    project(pw_.data(), qw_.data());
    combine<double>(nu.data(), nullptr, block.rows.data(), block.mp, py_.data(), block.d, block.mp);
    combine<double>(g.data(), nullptr, block.rows.data(), block.mp, pw_.data(), block.d, block.mp);
    std::fill_n(xi.data(), xi.size(), 0.0);
    std::fill_n(zeta.data(), zeta.size(), 0.0);
    solve(qy_.data(), xi.data());
    solve(qw_.data(), zeta.data());
    for (std::size_t i = 0; i < k; ++i) zeta[i] = -zeta[i];
    scan_stuck();
  }

  Aligned<double> y_;
  Aligned<double> sign_;   // the stuck signs; s leaves out those that ride along
  Aligned<double> fixed_;  // the values of parked components
  std::vector<std::size_t> parked_;
  Aligned<double> q_;  // columns of Q
  std::size_t rp_;
  Aligned<double> r_;  // columns of R
  Aligned<double> w_, py_, pw_, qy_, qw_, column_, correction_, spare_;
  std::vector<double> norm_;
};

}  // namespace antisparse::ANTISPARSE_ISA
