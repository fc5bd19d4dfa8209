// Single-bit flips: the best one at a time, as long as it gains, or (tabu) even where it loses, with the best signs met
// kept. A flip costs one pass over the row of G.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "refine_frame.hpp"

namespace antisparse::ANTISPARSE_ISA {

class Flips {
 public:
  explicit Flips(const RefineFrame& frame)
      : b(frame.stride), frame_(frame), c_(frame.stride), p_(frame.stride), until_(frame.stride), best_(frame.stride) {
    // Padding stays out for good: no step is as late.
    std::fill(&until_[0] + frame.m, &until_[0] + frame.stride, std::numeric_limits<float>::infinity());
  }

  // Improve the signs `b` for the correlations given.
  void run(const float* correlations, std::size_t flips, std::size_t tenure, Objective objective) {
    start(correlations);
    if (objective == Objective::euclidean)
      search(flips, tenure, [](P b, P c, P p, P g) { return fma(b, c - p, g); });  // a quarter of the change
    else
      search(flips, tenure, [this](P b, P c, P p, P g) {
        const P along = fma(P::all(-2), b * c, P::all(along_));
        const P size = fma(P::all(4), g - b * p, P::all(size_));
        return select(P::all(least_size_) < size, P::all(-1) * along * abs(along) / size, P::all(0)) - P::all(value_);
      });
  }

  Aligned<float> b;  // signs

 private:
  using P = Pack<float>;

  void start(const float* correlations) {
    std::copy_n(correlations, frame_.m, c_.data());
    std::fill_n(until_.data(), frame_.m, 0.0f);
    std::memset(p_.data(), 0, p_.size() * sizeof(float));
    for (std::size_t i = 0; i < frame_.m; ++i) add(i, b[i]);
    along_ = size_ = 0;
    float largest = 0;
    for (std::size_t j = 0; j < frame_.m; ++j) {
      along_ += b[j] * c_[j];
      size_ += b[j] * p_[j];
      largest += frame_.diagonal(j);
    }
    least_size_ = 1e-6f * largest;  // what rounding may make of A b = 0, where the cosine is taken for 0
    value_ = cosine_cost();
  }

  // Falls as the cosine of y and A b rises.
  float cosine_cost() const { return size_ > least_size_ ? -along_ * std::fabs(along_) / size_ : 0; }

  // p += weight G_i.
  void add(std::size_t i, float weight) {
    const P w = P::all(weight);
    const float* row = frame_.row(i);
    for (std::size_t j = frame_.first(i) / P::lanes * P::lanes; j < frame_.end(i); j += P::lanes)
      fma(w, P::load(row + j), P::load(&p_[j])).store(&p_[j]);
  }

  // `cost` gives the change of the objective by a flip, from b, c, p = G b and the diagonal g.
  template <class Cost>
  void search(std::size_t flips, std::size_t tenure, const Cost& cost) {
    const P infinity = P::all(std::numeric_limits<float>::infinity());
    float change = 0, least_change = 0;
    bool away = false;  // from the best signs met
    for (std::size_t step = 1; step <= flips; ++step) {
      const P now = P::all(static_cast<float>(step));
      P low = infinity, where = P::all(0), at = P::count();
      for (std::size_t j = 0; j < frame_.m; j += P::lanes, at = at + P::all(P::lanes)) {
        const P value = cost(P::load(&b[j]), P::load(&c_[j]), P::load(&p_[j]), P::load(frame_.diagonals() + j));
        const P allowed = select(P::load(&until_[j]) < now, value, infinity);
        const P less = allowed < low;
        low = select(less, allowed, low);
        where = select(less, at, where);
      }
      const float gain = least(low);
      if (!(gain < std::numeric_limits<float>::infinity()) || (tenure == 0 && !(gain < 0))) break;
      const std::size_t i = static_cast<std::size_t>(least(select(P::all(gain) < low, infinity, where)));  // the first
      if (!away && !(gain < 0)) {
        std::copy_n(b.data(), frame_.m, best_.data());
        away = true;
      }
      along_ -= 2 * b[i] * c_[i];
      size_ += 4 * (frame_.diagonal(i) - b[i] * p_[i]);
      value_ = cosine_cost();
      add(i, -2 * b[i]);
      b[i] = -b[i];
      until_[i] = static_cast<float>(step + tenure);
      change += gain;
      // A gain that rounding could have made is none.
      if (change < least_change - 1e-6f * std::fabs(least_change)) {
        least_change = change;
        away = false;
      }
    }
    if (away) std::copy_n(best_.data(), frame_.m, b.data());
  }

  const RefineFrame& frame_;
  Aligned<float> c_, p_, until_, best_;  // correlations, G b, the last step that may not flip a bit, the best signs
  float along_ = 0, size_ = 0, least_size_ = 0, value_ = 0;  // c.b, b.G b, and the cosine's cost
};

}  // namespace antisparse::ANTISPARSE_ISA
