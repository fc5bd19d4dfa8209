// Single-bit flips: the best one at a time, as long as it gains, or (tabu) even where it loses, with the best signs met
// kept. A flip costs one pass over the row of G, which looks for the next flip on its way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "refine/refine_frame.hpp"

namespace antisparse::ANTISPARSE_ISA {

class Flips {
 public:
  explicit Flips(const RefineFrame& frame)
      : b(frame.stride), frame_(frame), c_(frame.stride), p_(frame.stride), g_(frame.stride) {}

  // Take the signs `b` and the correlations of a vector: G b and what follows from it, afresh.
  void start(const float* correlations) {
    std::copy_n(correlations, frame_.m, c_.data());
    multiply();
    P dot = P::all(0), square = P::all(0), largest = P::all(0);
    for (std::size_t j = 0; j < frame_.stride; j += P::lanes) {
      dot = fma(P::load(&b[j]), P::load(&c_[j]), dot);
      square = fma(P::load(&b[j]), P::load(&p_[j]), square);
      largest = largest + P::load(frame_.diagonals() + j);
    }
    dot_ = sum(dot);
    square_ = sum(square);
    least_square_ = 1e-6f * sum(largest);  // what rounding may make of A b = 0, where the cosine is taken for 0
  }

  // Improve the signs, once started; with the Euclidean objective s A b shall rebuild y, for the scale s given.
  void run(std::size_t flips, std::size_t tenure, Objective objective, float scale) {
    prepare(flips, tenure, scale);
    for (std::size_t i = 0; i < flips; ++i)
      if (!(objective == Objective::euclidean ? step_euclidean() : step_cosine())) break;
    for (; count_ > 0; --count_) b[since_[count_ - 1]] *= -1;  // back to the best signs met
  }

  // Of the signs last started with.
  float dot() const { return dot_; }              // c.b
  float squared_norm() const { return square_; }  // b.G b
  // The s of least ||y - s A b||, at least that given.
  float scale(float least) const { return square_ > least_square_ ? std::max(dot_ / square_, least) : least; }

  Aligned<float> b;  // signs, and zeros

 private:
  using P = Pack<float>;
  static constexpr float kept = std::numeric_limits<float>::infinity();  // in place of the diagonal: may not flip

  // Falls as the cosine of y and A b rises.
  float cosine_cost() const { return square_ > least_square_ ? -dot_ * std::fabs(dot_) / square_ : 0; }

  // p = G b.
  void multiply() {
    tick(frame_.stride * frame_.stride);
    constexpr std::size_t packs = 4, width = packs * P::lanes;
    for (std::size_t j = 0; j < frame_.stride; j += width) {
      const std::size_t count = std::min(packs, (frame_.stride - j) / P::lanes);
      const std::size_t last = std::min(j + width, frame_.m) - 1;
      P total[packs] = {P::all(0), P::all(0), P::all(0), P::all(0)};
      if (j < frame_.m)
        for (std::size_t i = frame_.first(j); i < frame_.end(last); ++i) {
          const P sign = P::all(b[i]);
          const float* row = frame_.row(i) + j;
          if (count == packs)
            for (std::size_t k = 0; k < packs; ++k) total[k] = fma(sign, P::load(row + k * P::lanes), total[k]);
          else
            for (std::size_t k = 0; k < count; ++k) total[k] = fma(sign, P::load(row + k * P::lanes), total[k]);
        }
      for (std::size_t k = 0; k < count; ++k) total[k].store(&p_[j + k * P::lanes]);
    }
  }

  // The least cost in each lane, and where; on the way p follows the last flip.
  struct Least {
    P low = P::all(kept), where = P::all(0);
    void offer(P value, P at) {
      where = select(value < low, at, where);
      low = min(value, low);
    }
  };
  template <class Cost>
  Least scan(const Cost& cost) {
    Least even, odd;  // two chains of comparisons, which do not wait for each other
    const P weight = P::all(weight_), two = P::all(2 * P::lanes);
    P at = P::count(), after = at + P::all(P::lanes);
    const float *row = row_, *g = g_.data();
    float* p = p_.data();
    const auto next = [&](std::size_t j) {
      const P moved = fma(weight, P::load(row + j), P::load(p + j));
      moved.store(p + j);
      return cost(j, moved, P::load(g + j));
    };
    for (std::size_t j = 0, end = frame_.m; j < end; j += 2 * P::lanes) {  // the padding is even too
      even.offer(next(j), at);
      odd.offer(next(j + P::lanes), after);
      at = at + two;
      after = after + two;
    }
    // The first of equals.
    const P less = odd.low < even.low, more = even.low < odd.low;
    const P first = min(even.where, odd.where);
    return {min(even.low, odd.low), select(less, odd.where, select(more, even.where, first))};
  }

  void prepare(std::size_t flips, std::size_t tenure, float scale) {
    std::copy_n(frame_.diagonals(), frame_.stride, g_.data());
    std::fill(&g_[0] + frame_.m, &g_[0] + frame_.stride, kept);
    recent_.assign(std::min(tenure, frame_.m), frame_.m);  // past m flips all are kept
    next_ = 0;
    since_.resize(std::max(since_.size(), flips));
    count_ = 0;
    inverse_ = 1 / scale;
    row_ = frame_.row(0);
    weight_ = change_ = least_change_ = 0;
  }

  bool step_euclidean() {
    const P inverse = P::all(inverse_);  // the cost is a quarter of the change over s^2
    return step(
        [&](std::size_t j, P p, P g) { return fma(P::load(&b[j]), fma(inverse, P::load(&c_[j]), P::all(-1) * p), g); });
  }

  bool step_cosine() {
    value_ = cosine_cost();
    return step([&](std::size_t j, P p, P g) {
      const P sign = P::load(&b[j]);
      const P dot = fma(P::all(-2), sign * P::load(&c_[j]), P::all(dot_));
      const P square = fma(P::all(4), g - sign * p, P::all(square_));
      const P cost = select(P::all(least_square_) < square, P::all(-1) * dot * abs(dot) / square, P::all(0));
      return select(g < P::all(kept), cost - P::all(value_), g);
    });
  }

  // Flip the bit of least cost; false where none may, or, without tenure, none gains. `cost` gives the change of the
  // objective by the flip of each bit, from its column, p = G b and the diagonal.
  template <class Cost>
  bool step(const Cost& cost) {
    tick(4 * frame_.m);
    const Least found = scan(cost);
    const float gain = least(found.low);
    if (!(gain < (recent_.empty() ? 0 : kept))) return false;
    // The first of equals.
    const std::size_t i = static_cast<std::size_t>(least(select(P::all(gain) < found.low, P::all(kept), found.where)));
    dot_ -= 2 * b[i] * c_[i];
    square_ += 4 * (frame_.diagonal(i) - b[i] * p_[i]);
    row_ = frame_.row(i);
    weight_ = -2 * b[i];
    b[i] = -b[i];
    if (!recent_.empty()) {
      std::size_t& oldest = recent_[next_];
      next_ = next_ + 1 == recent_.size() ? 0 : next_ + 1;
      if (oldest < frame_.m) g_[oldest] = frame_.diagonal(oldest);
      g_[i] = kept;
      oldest = i;
    }
    change_ += gain;
    // A gain that rounding could have made is none.
    const bool better = change_ < least_change_ - 1e-6f * std::fabs(least_change_);
    least_change_ = better ? change_ : least_change_;
    since_[count_] = static_cast<std::uint32_t>(i);
    count_ = better ? 0 : count_ + 1;
    return true;
  }

  const RefineFrame& frame_;
  Aligned<float> c_, p_, g_;                                   // correlations, G b, the diagonal or `kept`
  float dot_ = 0, square_ = 0, least_square_ = 0, value_ = 0;  // c.b, b.G b, what counts as none, the cosine's cost
  float inverse_ = 1;                                          // of the scale
  const float* row_ = nullptr;                                 // of G, and its weight: the last flip, not yet in p
  float weight_ = 0;
  float change_ = 0, least_change_ = 0;  // of the cost, now and at its best
  std::vector<std::size_t> recent_;      // the last flips, as a ring
  std::size_t next_ = 0;
  std::vector<std::uint32_t> since_;  // the flips since the best signs met
  std::size_t count_ = 0;
};

}  // namespace antisparse::ANTISPARSE_ISA
