// The O(dm) products. Every one of them is a linear combination of contiguous, aligned, padded arrays.
#pragma once

#include <cstddef>

#include "machine/line.hpp"
#include "machine/simd.hpp"

namespace antisparse::ANTISPARSE_ISA {

template <class T, std::size_t packs>
inline void combine_strip(T* out, const T* base, const T* arrays, std::size_t stride, const T* coefficients,
                          std::size_t count) {
  constexpr std::size_t lanes = Pack<T>::lanes;
  Pack<T> acc[packs];
  for (std::size_t p = 0; p < packs; ++p) acc[p] = base ? Pack<T>::load(base + p * lanes) : Pack<T>::all(0);
  for (std::size_t j = 0; j < count; ++j) {
    const Pack<T> c = Pack<T>::all(coefficients[j]);
    const T* array = arrays + j * stride;
    for (std::size_t p = 0; p < packs; ++p) acc[p] = fma(c, Pack<T>::load(array + p * lanes), acc[p]);
  }
  for (std::size_t p = 0; p < packs; ++p) acc[p].store(out + p * lanes);
}

// out = base + sum_j coefficients[j] * arrays[j], each array n long (n padded), stride apart. base may be null (zero).
template <class T>
inline void combine(T* out, const T* base, const T* arrays, std::size_t stride, const T* coefficients,
                    std::size_t count, std::size_t n) {
  constexpr std::size_t lanes = Pack<T>::lanes;
  std::size_t i = 0;
  for (; i + 8 * lanes <= n; i += 8 * lanes)
    combine_strip<T, 8>(out + i, base ? base + i : nullptr, arrays + i, stride, coefficients, count);
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    combine_strip<T, 4>(out + i, base ? base + i : nullptr, arrays + i, stride, coefficients, count);
  for (; i + 2 * lanes <= n; i += 2 * lanes)
    combine_strip<T, 2>(out + i, base ? base + i : nullptr, arrays + i, stride, coefficients, count);
}

// combine() for arrays that form an upper triangle: array j is zero past its entry j.
template <class T>
inline void combine_upper(T* out, const T* arrays, std::size_t stride, const T* coefficients, std::size_t count,
                          std::size_t n) {
  constexpr std::size_t width = 2 * Pack<T>::lanes;
  for (std::size_t i = 0; i < n; i += width) {
    const std::size_t first = i < count ? i : count;
    combine_strip<T, 2>(out + i, nullptr, arrays + first * stride + i, stride, coefficients + first, count - first);
  }
}

// The vectors that share every load of combine_panel(): as many sums as registers hold.
#ifdef ANTISPARSE_TARGET_AVX512
constexpr std::size_t panel_tile = 12;
#else
constexpr std::size_t panel_tile = 6;
#endif

// out[v] = sum_j vectors[v][j] * arrays[j] for `tile` vectors that share every load of the arrays, each 64 bytes long
// and one behind the other. Each output is summed over j in order, so a vector's result does not depend on its tile.
// Always inline: GCC keeps the sums of NEON, two registers each, in memory too where it is a function of its own.
template <class T, std::size_t tile>
[[gnu::always_inline]] inline void combine_panel(T* out, std::size_t out_stride, const T* arrays, const T* vectors,
                                                 std::size_t stride, std::size_t count) {
  using L = Line<T>;
  L acc[tile];
  for (std::size_t v = 0; v < tile; ++v) acc[v] = L::all(0);
  for (std::size_t j = 0; j < count; ++j) {
    const L array = L::load(arrays + j * L::lanes);
    for (std::size_t v = 0; v < tile; ++v) acc[v] = fma(L::all(vectors[v * stride + j]), array, acc[v]);
  }
  for (std::size_t v = 0; v < tile; ++v) acc[v].store(out + v * out_stride);
}

template <class T>
inline T dot(const T* a, const T* b, std::size_t n) {
  constexpr std::size_t lanes = Pack<T>::lanes;
  Pack<T> s0 = Pack<T>::all(0), s1 = s0;
  for (std::size_t i = 0; i < n; i += 2 * lanes) {
    s0 = fma(Pack<T>::load(a + i), Pack<T>::load(b + i), s0);
    s1 = fma(Pack<T>::load(a + i + lanes), Pack<T>::load(b + i + lanes), s1);
  }
  return sum(s0 + s1);
}

template <class T>
inline T absolute_sum(const T* a, std::size_t n) {
  constexpr std::size_t lanes = Pack<T>::lanes;
  Pack<T> s = Pack<T>::all(0);
  for (std::size_t i = 0; i < n; i += lanes) s = s + abs(Pack<T>::load(a + i));
  return sum(s);
}

// y += a x
template <class T>
inline void axpy(T* y, T a, const T* x, std::size_t n) {
  constexpr std::size_t lanes = Pack<T>::lanes;
  const Pack<T> c = Pack<T>::all(a);
  for (std::size_t i = 0; i < n; i += lanes) fma(c, Pack<T>::load(x + i), Pack<T>::load(y + i)).store(y + i);
}

template <class T, std::size_t packs>
inline void rotate_strip(T* arrays, std::size_t stride, const T* cosine, const T* sine, std::size_t count) {
  constexpr std::size_t lanes = Pack<T>::lanes;
  Pack<T> carry[packs];
  for (std::size_t p = 0; p < packs; ++p) carry[p] = Pack<T>::load(arrays + p * lanes);
  for (std::size_t q = 0; q < count; ++q) {
    const Pack<T> c = Pack<T>::all(cosine[q]), s = Pack<T>::all(sine[q]);
    const T* next = arrays + (q + 1) * stride;
    T* kept = arrays + q * stride;
    for (std::size_t p = 0; p < packs; ++p) {
      const Pack<T> v = Pack<T>::load(next + p * lanes);
      (s * v - c * carry[p]).store(kept + p * lanes);
      carry[p] = fma(s, carry[p], c * v);
    }
  }
  for (std::size_t p = 0; p < packs; ++p) carry[p].store(arrays + count * stride + p * lanes);
}

// The chain of Givens rotations of neighbours (0,1), (1,2), ... of count + 1 arrays: each pair (u, v) becomes
// (s v - c u, s u + c v), and the second is carried to the next pair.
template <class T>
inline void rotate_chain(T* arrays, std::size_t stride, const T* cosine, const T* sine, std::size_t count,
                         std::size_t n) {
  constexpr std::size_t lanes = Pack<T>::lanes;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) rotate_strip<T, 4>(arrays + i, stride, cosine, sine, count);
  for (; i + 2 * lanes <= n; i += 2 * lanes) rotate_strip<T, 2>(arrays + i, stride, cosine, sine, count);
}

}  // namespace antisparse::ANTISPARSE_ISA
