// One query of a scan: exact scores by 4-bit tables, and the k best so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "scan.hpp"

namespace antisparse {

// For every 4 bits, the sum of |W_j| over those that disagree with the sign of W_j, exactly.
class ExactTables {
 public:
  ExactTables(const std::int32_t* weights, std::size_t bits, std::size_t bytes) : sums_(bytes * 32) {
    for (std::size_t nibble = 0; nibble < 2 * bytes; ++nibble)
      for (std::size_t value = 0; value < 16; ++value) {
        std::int32_t sum = 0;
        for (std::size_t bit = 0; bit < 4; ++bit) {
          const std::size_t j = 4 * nibble + bit;
          if (j >= bits) continue;  // padding never counts
          const bool set = value >> (3 - bit) & 1;
          if (set != (weights[j] >= 0)) sum += std::abs(weights[j]);
        }
        sums_[16 * nibble + value] = sum;
      }
    for (std::size_t j = 0; j < bits; ++j) total += std::abs(static_cast<std::int64_t>(weights[j]));
  }

  // D of the code whose bytes are `stride` apart.
  std::int64_t disagreement(const std::uint8_t* code, std::size_t stride) const {
    std::int64_t sum = 0;
    const std::int32_t* table = sums_.data();
    for (std::size_t j = 0; 32 * j < sums_.size(); ++j, table += 32) {
      const std::uint8_t byte = code[j * stride];
      sum += table[byte >> 4] + table[16 + (byte & 15)];
    }
    return sum;
  }

  // The 16 sums of one nibble.
  const std::int32_t* nibble(std::size_t i) const { return &sums_[16 * i]; }
  std::size_t nibbles() const { return sums_.size() / 16; }

  std::int64_t total = 0;  // T

 private:
  std::vector<std::int32_t> sums_;
};

// The score of code i, in the one order of operations that everything compares with.
inline double exact_score(const ScanJob& job, const ExactTables& tables, double unit, std::size_t i) {
  const std::uint8_t* code = job.blocks + i / scan_block * scan_block * job.bytes + i % scan_block;
  const std::int64_t d = tables.disagreement(code, scan_block);
  if (!job.scale) return static_cast<double>(d);
  const double s = static_cast<double>(tables.total - 2 * d) * unit;
  const double product = static_cast<double>(job.scale[i]) * s;
  return static_cast<double>(job.bias ? job.bias[i] : job.bias0) + product;
}

struct Candidate {
  double score;
  std::int64_t id;
  bool operator<(const Candidate& other) const {
    return score < other.score || (score == other.score && id < other.id);
  }
};

// The k least candidates seen, as a heap with the greatest on top.
class Best {
 public:
  explicit Best(std::size_t k) : k_(k) { heap_.reserve(std::min<std::size_t>(k, 4096)); }

  // No candidate with a greater score can enter.
  double bound() const { return heap_.size() < k_ ? std::numeric_limits<double>::infinity() : heap_.front().score; }

  void offer(Candidate candidate) {
    if (heap_.size() < k_) {
      heap_.push_back(candidate);
      std::push_heap(heap_.begin(), heap_.end());
    } else if (k_ > 0 && candidate < heap_.front()) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = candidate;
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  // All of another's candidates, for the same query.
  void merge(const Best& other) {
    for (const Candidate& candidate : other.heap_) offer(candidate);
  }

  void write(double* scores, std::int64_t* ids) {
    std::sort_heap(heap_.begin(), heap_.end());
    for (std::size_t i = 0; i < k_; ++i) {
      scores[i] = i < heap_.size() ? heap_[i].score : std::numeric_limits<double>::infinity();
      ids[i] = i < heap_.size() ? heap_[i].id : -1;
    }
  }

 private:
  std::size_t k_;
  std::vector<Candidate> heap_;
};

}  // namespace antisparse
