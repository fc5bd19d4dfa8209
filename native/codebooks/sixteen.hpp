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
#include <vector>

#include "machine/line.hpp"
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
struct Sixteen<float> : Line<float> {
  Sixteen(Line<float> line) : Line(line) {}
};

inline Line<float> max(Line<float> a, Line<float> b) { return where_less(a, b, b, a); }

template <>
class LeastSixteen<float> {
 public:
  void offer(Sixteen<float> value, Sixteen<float> group) {
    group_ = where_less(value, low_, group, group_);
    low_ = where_less(value, low_, value, low_);
  }
  float value() const {
    alignas(64) float low[16];
    low_.store(low);
    return *std::min_element(low, low + 16);
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

namespace antisparse::ANTISPARSE_ISA {

// The column that each codebook has chosen, and what a pass over the costs of all codewords takes at a time: those of
// one codebook, or of as many as a vector holds.
template <class T>
class Chosen {
 public:
  static constexpr std::size_t books = 1;  // at a time
  using Costs = Sixteen<T>;
  using Least = LeastSixteen<T>;
  // What a loop keeps in registers, since a compiler would read members again after every vector stored.
  struct View {
    const std::size_t* columns;
    // The costs of what codebook `book` has chosen; `stored` holds all of them.
    Costs costs(Costs, const T* stored, std::size_t book) const { return Costs::all(stored[columns[book]]); }
  };

  explicit Chosen(std::size_t count) : columns_(count) {}
  std::size_t operator[](std::size_t book) const { return columns_[book]; }
  void set(std::size_t book, std::size_t column) { columns_[book] = column; }
  View view() const { return {columns_.data()}; }

 private:
  std::vector<std::size_t> columns_;
};

}  // namespace antisparse::ANTISPARSE_ISA

#ifdef ANTISPARSE_TARGET_AVX512
#include "codebooks/thirty_two_avx512.hpp"
#endif
