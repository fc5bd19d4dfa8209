// The sure way to go from one piece of the path to the next: A_F = Q R with Q kept orthonormal to working precision.
//
// Nothing is carried from piece to piece but the partition and the factor: w, P y, P w, xi and zeta are formed afresh,
// so errors do not accumulate, and cond(A_F) enters once, not squared as through the Gram matrix. Columns that
// depend on A_F (duplicates, zero columns) are parked: their correlation stays zero while A_F holds their span.
#pragma once

#include <algorithm>
#include <cmath>

#include "segment.hpp"

namespace antisparse::ANTISPARSE_ISA {

class OrthogonalSegment : public Segment<double> {
 public:
  explicit OrthogonalSegment(const Block<double>& b)
      : Segment<double>(b),
        y_(b.dp),
        sign_(b.mp),
        q_(b.rank * b.dp),
        rp_(padded<double>(b.rank)),
        r_((b.rank + 1) * rp_),
        w_(b.dp),
        py_(b.dp),
        pw_(b.dp),
        qy_(rp_),
        qw_(rp_),
        column_(rp_),
        correction_(rp_),
        norm_(b.m) {
    for (std::size_t j = 0; j < b.m; ++j)
      norm_[j] = std::sqrt(dot(&b.columns[j * b.dp], &b.columns[j * b.dp], b.dp));
  }

  void start(const double* y) {
    k = 0;
    std::copy_n(y, block.dp, y_.data());
    combine<double>(nu.data(), nullptr, block.rows.data(), block.mp, y, block.d, block.mp);
    for (std::size_t i = 0; i < block.m; ++i) s[i] = sign_[i] = nu[i] < 0 ? -1 : 1;
    h1 = absolute_sum(nu.data(), block.mp);
    refresh();
  }

  bool release(std::size_t j) {
    double* q = &q_[k * block.dp];
    std::copy_n(&block.columns[j * block.dp], block.dp, q);
    project(q, column_.data());
    const double rho = std::sqrt(dot(q, q, block.dp));
    if (!(rho > dependent * norm_[j])) {
      s[j] = 0;  // parked: no event, until a column leaves F
      return true;
    }
    for (std::size_t i = 0; i < block.dp; ++i) q[i] /= rho;
    std::copy_n(column_.data(), k, &r_[k * rp_]);
    r_[k * rp_ + k] = rho;
    s[j] = sign_[j] = 0;
    free[k++] = j;
    refresh();
    return true;
  }

  void stick(std::size_t place, double sign) {
    const std::size_t i = free[place];
    // Column `place` leaves R, which becomes Hessenberg; rotations of neighbouring rows, and of the columns of Q,
    // make it triangular again.
    for (std::size_t c = place; c + 1 < k; ++c) std::copy_n(&r_[(c + 1) * rp_], c + 2, &r_[c * rp_]);
    for (std::size_t q = place; q + 1 < k; ++q) {
      const double a = r_[q * rp_ + q], b = r_[q * rp_ + q + 1], root = std::hypot(a, b), c = a / root, t = b / root;
      for (std::size_t column = q; column + 1 < k; ++column) {
        double* pair = &r_[column * rp_ + q];
        const double u = pair[0], v = pair[1];
        pair[0] = c * u + t * v;
        pair[1] = c * v - t * u;
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
    std::copy_n(sign_.data(), block.mp, s.data());
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

  // The true signs: zero on F only.
  double sign(std::size_t i) const { return sign_[i]; }

 private:
  // ||P a_j|| / ||a_j|| below which a_j is taken to lie in span(A_F).
  static constexpr double dependent = 1e-11;

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
  }

  Aligned<double> y_, sign_;
  Aligned<double> q_;  // columns of Q
  std::size_t rp_;
  Aligned<double> r_;  // columns of R
  Aligned<double> w_, py_, pw_, qy_, qw_, column_, correction_;
  std::vector<double> norm_;
};

}  // namespace antisparse::ANTISPARSE_ISA
