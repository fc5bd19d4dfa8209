// The spread problem in its constrained form, min ||A x - y||^2 with |x_i| <= 1, by coordinate descent whose diagonal
// term goes from convex to concave, so that every component ends at a corner.
#pragma once

#include <cstring>

#include "refine_frame.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Several vectors at once, one a lane, so that they share each row of G.
class Anneal {
 public:
  static constexpr std::size_t packs = 4, lanes = Pack<float>::lanes, width = packs * lanes;

  explicit Anneal(const RefineFrame& frame) : frame_(frame), x_(frame.m * width), c_(frame.m * width) {}

  // Component i of vector v, after `run`.
  float sign(std::size_t v, std::size_t i) const { return x_[i * width + v]; }

  // For `count` <= width vectors, m correlations each. In sweep s of n the diagonal is G_ii (1 + lambda), lambda =
  // -((s - 1) / (n - 1))^2; in the last the update is the sign of its numerator.
  void run(const float* correlations, std::size_t count, std::size_t sweeps) {
    const std::size_t m = frame_.m;
    std::memset(x_.data(), 0, x_.size() * sizeof(float));
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t v = 0; v < width; ++v) c_[i * width + v] = v < count ? correlations[v * m + i] : 0;
    for (std::size_t s = 0; s + 1 < sweeps; ++s) {
      const float part = static_cast<float>(s) / static_cast<float>(sweeps - 1);
      sweep(1 - part * part, false);
    }
    sweep(0, true);
  }

 private:
  void sweep(float convexity, bool last) {
    using P = Pack<float>;
    const P one = P::all(1), minus_one = P::all(-1), zero = P::all(0);
    for (std::size_t i = 0; i < frame_.m; ++i) {
      P sum[packs];
      numerator(i, sum);
      const float inverse = last ? 1 : 1 / (frame_.diagonal(i) * convexity);
      for (std::size_t p = 0; p < packs; ++p) {
        P value = sum[p];
        if (last) {
          value = select(value < zero, minus_one, one);
        } else {
          value = value * P::all(inverse);
          value = select(value < minus_one, minus_one, select(one < value, one, value));
        }
        value.store(&x_[i * width + p * lanes]);
      }
    }
  }

  // c_i - sum over j != i of G_ij x_j.
  void numerator(std::size_t i, Pack<float>* out) const {
    using P = Pack<float>;
    const float* row = frame_.row(i);
    P even[packs], odd[packs];
    for (std::size_t p = 0; p < packs; ++p) {
      even[p] = fma(P::all(row[i]), P::load(&x_[i * width + p * lanes]), P::load(&c_[i * width + p * lanes]));
      odd[p] = P::all(0);
    }
    std::size_t j = frame_.first(i);
    const std::size_t end = frame_.end(i);
    for (; j + 2 <= end; j += 2) {
      const P a = P::all(-row[j]), b = P::all(-row[j + 1]);
      const float* x = &x_[j * width];
      for (std::size_t p = 0; p < packs; ++p) {
        even[p] = fma(a, P::load(x + p * lanes), even[p]);
        odd[p] = fma(b, P::load(x + width + p * lanes), odd[p]);
      }
    }
    if (j < end)
      for (std::size_t p = 0; p < packs; ++p)
        even[p] = fma(P::all(-row[j]), P::load(&x_[j * width + p * lanes]), even[p]);
    for (std::size_t p = 0; p < packs; ++p) out[p] = even[p] + odd[p];
  }

  const RefineFrame& frame_;
  Aligned<float> x_, c_;  // component by component, `width` vectors each
};

}  // namespace antisparse::ANTISPARSE_ISA
