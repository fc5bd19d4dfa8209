// Sixteen<T>: 16 floats or integers of 16 bits, the costs of a codebook's codewords, and the least of many such.
// Included as simd.hpp is, once per instruction set; each has a file of its own for the integers.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including codebooks/sixteen.hpp"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "machine/simd.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Sums of integers must fit; differences are as far as they do.
template <class T>
struct Sixteen;

// The least of all values offered, in groups of 16, and its number: the first of equals. What is not below the largest
// of T is none.
template <class T>
class LeastSixteen;

template <>
struct Sixteen<float> {
  using P = Pack<float>;
  static constexpr std::size_t packs = 16 / P::lanes;
  P v[packs];
  template <class F>
  static Sixteen each(F f) {
    Sixteen r;
    for (std::size_t p = 0; p < packs; ++p) r.v[p] = f(p);
    return r;
  }
  static Sixteen load(const float* p) {
    return each([&](std::size_t i) { return P::load(p + i * P::lanes); });
  }
  static Sixteen all(float x) {
    return each([&](std::size_t) { return P::all(x); });
  }
  void store(float* p) const {
    for (std::size_t i = 0; i < packs; ++i) v[i].store(p + i * P::lanes);
  }
  friend Sixteen operator+(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
  }
  friend Sixteen operator-(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return a.v[i] - b.v[i]; });
  }
  friend Sixteen max(Sixteen a, Sixteen b) {
    return each([&](std::size_t i) { return select(a.v[i] < b.v[i], b.v[i], a.v[i]); });
  }
};

template <>
class LeastSixteen<float> {
 public:
  void offer(Sixteen<float> value, Sixteen<float> group) {
    for (std::size_t p = 0; p < Sixteen<float>::packs; ++p) {
      group_.v[p] = select(value.v[p] < low_.v[p], group.v[p], group_.v[p]);
      low_.v[p] = min(value.v[p], low_.v[p]);
    }
  }
  float value() const {
    float lowest = std::numeric_limits<float>::max();
    for (const Pack<float> low : low_.v) lowest = std::min(lowest, least(low));
    return lowest;
  }
  std::size_t where() const {
    alignas(64) float low[16], group[16];
    low_.store(low);
    group_.store(group);
    std::size_t best = 0;
    for (std::size_t i = 1; i < 16; ++i)
      if (low[i] < low[best] || (low[i] == low[best] && group[i] < group[best])) best = i;
    return 16 * static_cast<std::size_t>(group[best]) + best;
  }

 private:
  Sixteen<float> low_ = Sixteen<float>::all(std::numeric_limits<float>::max()), group_ = Sixteen<float>::all(0);
};

}  // namespace antisparse::ANTISPARSE_ISA

#ifdef ANTISPARSE_TARGET_AVX2
#include "codebooks/sixteen_avx2.hpp"
#elif defined(ANTISPARSE_TARGET_NEON)
#include "codebooks/sixteen_neon.hpp"
#else
#include "codebooks/sixteen_portable.hpp"
#endif
