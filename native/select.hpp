// A bound on the k-th least of many values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace antisparse::ANTISPARSE_ISA {

// No less than the k-th least of some values, and close to it; infinity where there are fewer than k.
inline float bound_kth_least(const float* values, std::size_t size, std::size_t k, std::vector<float>& folded) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (size < k) return infinity;
  if (folded.size() < size) folded.resize(size);
  if (size < 4 * k) std::copy_n(values, size, folded.data());
  // The less of each pair, again and again: the k-th least of those left is that of some k values or more.
  for (; size >= 4 * k; values = folded.data()) {
    const std::size_t half = size / 2;
    if (size % 2) folded[half] = values[half];  // which has no other
    for (std::size_t i = 0; i < half; ++i) folded[i] = std::min(values[i], values[size - half + i]);
    size -= half;
  }
  if (size > 128) {
    std::nth_element(folded.data(), folded.data() + (k - 1), folded.data() + size);
    return folded[k - 1];
  }
  // Of few, the least that k are not above: no branch depends on the values.
  std::uint32_t below[128] = {};
  for (std::size_t j = 0; j < size; ++j)
    for (std::size_t i = 0; i < size; ++i) below[i] += folded[j] <= folded[i];
  float least = infinity;
  for (std::size_t i = 0; i < size; ++i) least = std::min(least, below[i] >= k ? folded[i] : infinity);
  return least;
}

}  // namespace antisparse::ANTISPARSE_ISA
