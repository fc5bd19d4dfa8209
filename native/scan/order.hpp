// Candidates in order.
#pragma once

#include <algorithm>
#include <array>
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

// Equal steps between the least score and the greatest: candidates are dealt into them, which compares nothing.
class Steps {
 public:
  Steps(const std::vector<Candidate>& candidates, std::size_t count) {
    double low = candidates[0].score, high = low;
    for (const Candidate& one : candidates) {
      low = std::min(low, one.score);
      high = std::max(high, one.score);
    }
    low_ = low;
    factor_ = static_cast<double>(count - 1) / (high - low);
    fit_ = factor_ > 0 && std::isfinite(factor_) && std::isfinite(low);
  }
  bool fit() const { return fit_; }  // false where scores are equal, infinite or too far apart
  std::uint32_t of(const Candidate& one) const { return static_cast<std::uint32_t>((one.score - low_) * factor_); }

 private:
  double low_, factor_;
  bool fit_;
};

// Sorts by (score, id). Candidates are dealt into steps, of which there are some for each of a few, and 2^20, ten bits
// at a time, for many; what falls into one step is in its old order, and sorted where that is not the right one.
// `spare` is memory that the caller keeps.
inline void sort_candidates(std::vector<Candidate>& candidates, std::vector<Candidate>& spare) {
  constexpr std::size_t few = 20, some = 2048, bits = 10, digits = std::size_t{1} << bits;
  const std::size_t count = candidates.size();
  const Steps steps = count > few ? Steps(candidates, count > some ? digits * digits : digits) : Steps({{0, 0}}, 2);
  if (!steps.fit()) {
    std::sort(candidates.begin(), candidates.end());
    return;
  }
  tick(64 * count);
  spare.resize(count);
  for (std::size_t shift = 0; shift == 0 || (count > some && shift < 2 * bits); shift += bits) {
    std::array<std::uint32_t, digits + 1> starts{};
    const auto digit = [&](const Candidate& one) { return steps.of(one) >> shift & (digits - 1); };
    for (const Candidate& one : candidates) ++starts[digit(one) + 1];
    for (std::size_t i = 0; i < digits; ++i) starts[i + 1] += starts[i];
    for (const Candidate& one : candidates) spare[starts[digit(one)]++] = one;
    std::swap(candidates, spare);
  }
  for (std::size_t i = 1; i < count; ++i) {
    if (!(candidates[i] < candidates[i - 1])) continue;
    const std::uint32_t same = steps.of(candidates[i]);
    std::size_t first = i - 1, end = i + 1;
    while (first > 0 && steps.of(candidates[first - 1]) == same) --first;
    while (end < count && steps.of(candidates[end]) == same) ++end;
    const auto begin = candidates.begin();
    std::sort(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end));
    i = end - 1;
  }
}

// The n-th least of the candidates from `first` on, which are left in any order.
inline Candidate nth_least(std::vector<Candidate>& candidates, std::size_t first, std::size_t n) {
  constexpr std::size_t many = std::size_t{1} << 16;
  const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(first);
  const auto nth = begin + static_cast<std::ptrdiff_t>(n - 1);
  if (candidates.size() - first < many)
    std::nth_element(begin, nth, candidates.end());
  else
    std::nth_element(begin, nth, candidates.end(), [](const Candidate& a, const Candidate& b) {
      tick(8);
      return a < b;
    });
  return *nth;
}

// Keeps the k least, which are fewer than all, and returns the greatest of them. The step that the k-th falls into is
// found by counting, and only what is in it is compared.
inline Candidate keep_least(std::vector<Candidate>& candidates, std::size_t k, std::vector<Candidate>& spare) {
  constexpr std::size_t digits = 1024, few = 64;
  const Steps steps(candidates, digits);
  if (candidates.size() < few || !steps.fit()) {
    const Candidate last = nth_least(candidates, 0, k);
    candidates.resize(k);
    return last;
  }
  tick(64 * candidates.size());
  std::array<std::uint32_t, digits> counts{};
  for (const Candidate& one : candidates) ++counts[steps.of(one)];
  std::size_t below = 0;
  std::uint32_t edge = 0;
  while (below + counts[edge] < k) below += counts[edge++];
  // Those of lower steps to the front, those of this one aside, all in their old order.
  spare.resize(std::max(candidates.size(), 2 * std::size_t{counts[edge]}));
  std::size_t kept = 0, aside = 0;
  for (const Candidate& one : candidates) {
    const std::uint32_t step = steps.of(one);
    spare[aside] = one;
    candidates[kept] = one;
    aside += step == edge;
    kept += step < edge;
  }
  spare.resize(2 * aside);
  std::copy_n(spare.begin(), aside, spare.begin() + static_cast<std::ptrdiff_t>(aside));
  const Candidate last = nth_least(spare, aside, k - below);
  for (std::size_t i = 0; kept < k; ++i)
    if (!(last < spare[i])) candidates[kept++] = spare[i];
  candidates.resize(k);
  return last;
}

}  // namespace antisparse::ANTISPARSE_ISA
