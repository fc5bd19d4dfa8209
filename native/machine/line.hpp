// Line<T>: 16 floats or 8 doubles, the 64 bytes of a cache line, for work in which lanes never meet: in however many
// vectors a line lies, the bits are the same. Pack<T> is for sums across lanes. Included as simd.hpp is.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including machine/line.hpp"
#endif

#include <cstddef>

#include "machine/simd.hpp"

namespace antisparse::ANTISPARSE_ISA {

template <class T>
struct Line {
  using P = Pack<T>;
  static constexpr std::size_t lanes = 64 / sizeof(T), packs = lanes / P::lanes;
  P v[packs];
  template <class F>
  static Line each(F f) {
    Line r;
    for (std::size_t p = 0; p < packs; ++p) r.v[p] = f(p);
    return r;
  }
  static Line load(const T* p) {
    return each([&](std::size_t i) { return P::load(p + i * P::lanes); });
  }
  static Line all(T x) {
    const P lanes = P::all(x);
    return each([&](std::size_t) { return lanes; });
  }
  void store(T* p) const {
    for (std::size_t i = 0; i < packs; ++i) v[i].store(p + i * P::lanes);
  }
  friend Line operator+(Line a, Line b) {
    return each([&](std::size_t i) { return a.v[i] + b.v[i]; });
  }
  friend Line operator-(Line a, Line b) {
    return each([&](std::size_t i) { return a.v[i] - b.v[i]; });
  }
  friend Line fma(Line a, Line b, Line c) {
    return each([&](std::size_t i) { return fma(a.v[i], b.v[i], c.v[i]); });
  }
  // Where a is below b yes, elsewhere no.
  friend Line where_less(Line a, Line b, Line yes, Line no) {
    return each([&](std::size_t i) { return select(a.v[i] < b.v[i], yes.v[i], no.v[i]); });
  }
};

}  // namespace antisparse::ANTISPARSE_ISA

#ifdef ANTISPARSE_TARGET_AVX512
#include "machine/line_avx512.hpp"
#endif
