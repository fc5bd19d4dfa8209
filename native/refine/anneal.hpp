// The spread problem in its constrained form, min ||A x - y||^2 with |x_i| <= 1, by coordinate descent whose diagonal
// term goes from convex to concave, so that every component ends at a corner.
#pragma once

#include <cstring>

#include "refine/refine_frame.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Several vectors at once, one a lane, so that they share each row of G.
class Anneal {
 public:
  static constexpr std::size_t packs = 4, lanes = Pack<float>::lanes, width = packs * lanes;

  explicit Anneal(const RefineFrame& frame) : frame_(frame), x_(frame.m * width), c_(frame.m * width) {}

  // Component i of vector v, after `run`.
  float sign(std::size_t v, std::size_t i) const { return x_[i * width + v]; }

  // For `count` <= width vectors, m correlations and, unless null, one scale each. In sweep s of n the diagonal is G_ii
  // (1 + lambda), lambda =
  // -((s - 1) / (n - 1))^2; in the last the update is the sign of its numerator.
  void run(const float* correlations, const float* scales, std::size_t count, std::size_t sweeps) {
    const std::size_t m = frame_.m;
    std::memset(x_.data(), 0, x_.size() * sizeof(float));
    std::memset(c_.data(), 0, c_.size() * sizeof(float));
    for (std::size_t v = 0; v < count; ++v) {
      const float inverse = scales ? 1 / scales[v] : 1;
      for (std::size_t i = 0; i < m; ++i) c_[i * width + v] = inverse * correlations[v * m + i];
    }
    for (std::size_t s = 0; s + 1 < sweeps; ++s) {
      const float part = static_cast<float>(s) / static_cast<float>(sweeps - 1);
      sweep(1 - part * part, false);
    }
    sweep(0, true);
  }

 private:
  using P = Pack<float>;

  // Three rows of one block share each load of x: the numerators of the later ones are put right as the first move.
  void sweep(float convexity, bool last) {
    for (std::size_t i = 0; i < frame_.m;) {
      const std::size_t left = frame_.end(i) - i;
      if (left >= 3)
        i += rows_from<3>(i, convexity, last);
      else if (left == 2)
        i += rows_from<2>(i, convexity, last);
      else
        i += rows_from<1>(i, convexity, last);
    }
  }

  template <std::size_t rows>
  std::size_t rows_from(std::size_t i, float convexity, bool last) {
    tick(rows * width * (frame_.end(i) - frame_.first(i)));
    P sum[rows][packs];
    numerators<rows>(i, sum);
    for (std::size_t r = 0; r < rows; ++r) {
      float* x = &x_[(i + r) * width];
      P before[packs];
      for (std::size_t p = 0; p < packs; ++p) before[p] = P::load(x + p * lanes);
      move(i + r, sum[r], convexity, last);
      for (std::size_t later = r + 1; later < rows; ++later) {
        const P g = P::all(frame_.row(i + later)[i + r]);
        for (std::size_t p = 0; p < packs; ++p)
          sum[later][p] = fma(g, before[p] - P::load(x + p * lanes), sum[later][p]);
      }
    }
    return rows;
  }

  // x_i from its numerator.
  void move(std::size_t i, const P* sum, float convexity, bool last) {
    const P one = P::all(1), minus_one = P::all(-1);
    const P inverse = P::all(last ? 1 : 1 / (frame_.diagonal(i) * convexity));
    for (std::size_t p = 0; p < packs; ++p) {
      P value = sum[p];
      if (last) {
        value = select(value < P::all(0), minus_one, one);
      } else {
        value = value * inverse;
        value = select(value < minus_one, minus_one, select(one < value, one, value));
      }
      value.store(&x_[i * width + p * lanes]);
    }
  }

  // c_i - sum over j != i of G_ij x_j, for i and the rows after it.
  template <std::size_t rows>
  void numerators(std::size_t i, P out[rows][packs]) const {
    const float* row[rows];
    P sum[rows][packs];
    for (std::size_t r = 0; r < rows; ++r) {
      row[r] = frame_.row(i + r);
      for (std::size_t p = 0; p < packs; ++p) sum[r][p] = P::all(0);
    }
    const std::size_t end = frame_.end(i);
    for (std::size_t j = frame_.first(i); j < end; ++j) {
      const float* x = &x_[j * width];
      P g[rows];
      for (std::size_t r = 0; r < rows; ++r) g[r] = P::all(row[r][j]);
      for (std::size_t p = 0; p < packs; ++p) {
        const P value = P::load(x + p * lanes);
        for (std::size_t r = 0; r < rows; ++r) sum[r][p] = fma(g[r], value, sum[r][p]);
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t at = (i + r) * width;
      for (std::size_t p = 0; p < packs; ++p)
        out[r][p] = fma(P::all(row[r][i + r]), P::load(&x_[at + p * lanes]), P::load(&c_[at + p * lanes])) - sum[r][p];
    }
  }

  const RefineFrame& frame_;
  Aligned<float> x_, c_;  // component by component, `width` vectors each
};

}  // namespace antisparse::ANTISPARSE_ISA
