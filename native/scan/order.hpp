// Candidates in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "machine/watch.hpp"

namespace antisparse::ANTISPARSE_ISA {

struct Candidate {
  double score;
  std::int64_t id;
  bool operator<(const Candidate& other) const {
    return score < other.score || (score == other.score && id < other.id);
  }
};

// Sorts by (score, id). Many are dealt into 2^20 equal steps between the least score and the greatest, ten bits at a
// time, which compares nothing; what falls into one step is in its old order, and sorted where that is not the right
// one.
inline void sort_candidates(std::vector<Candidate>& candidates) {
  constexpr std::size_t few = 256, bits = 10, digits = std::size_t{1} << bits;
  const std::size_t count = candidates.size();
  double low = 0, factor = 0;
  if (count > few) {
    const auto less = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
    const auto ends = std::minmax_element(candidates.begin(), candidates.end(), less);
    low = ends.first->score;
    factor = (digits * digits - 1) / (ends.second->score - low);
  }
  if (!(factor > 0 && std::isfinite(factor) && std::isfinite(low))) {
    std::sort(candidates.begin(), candidates.end());
    return;
  }
  tick(64 * count);
  const auto step = [&](const Candidate& one) { return static_cast<std::uint32_t>((one.score - low) * factor); };
  std::vector<Candidate> dealt(count);
  for (std::size_t shift = 0; shift < 2 * bits; shift += bits) {
    std::size_t starts[digits + 1] = {};
    const auto digit = [&](const Candidate& one) { return step(one) >> shift & (digits - 1); };
    for (const Candidate& one : candidates) ++starts[digit(one) + 1];
    for (std::size_t i = 0; i < digits; ++i) starts[i + 1] += starts[i];
    for (const Candidate& one : candidates) dealt[starts[digit(one)]++] = one;
    std::swap(candidates, dealt);
  }
  for (std::size_t i = 1; i < count; ++i) {
    if (!(candidates[i] < candidates[i - 1])) continue;
    const std::uint32_t same = step(candidates[i]);
    std::size_t first = i - 1, end = i + 1;
    while (first > 0 && step(candidates[first - 1]) == same) --first;
    while (end < count && step(candidates[end]) == same) ++end;
    const auto begin = candidates.begin();
    std::sort(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end));
    i = end - 1;
  }
}

}  // namespace antisparse::ANTISPARSE_ISA
