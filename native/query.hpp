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
  ExactTables(const ScanJob& job, std::size_t query) : sums_(job.bytes * 32) {
    const std::int32_t* weights = job.weights + query * job.bits;
    const std::size_t bits = job.bits, bytes = job.bytes - job.side;
    for (std::size_t nibble = 0; nibble < 2 * bytes; ++nibble) {
      std::int32_t* sums = &sums_[16 * nibble];
      std::int32_t own[4];  // of the bits of value 1, 2, 4, 8
      for (std::size_t bit = 0; bit < 4; ++bit) {
        const std::size_t j = 4 * nibble + bit;
        own[3 - bit] = j < bits ? weights[j] : 0;  // padding never counts
        sums[0] += std::max(own[3 - bit], 0);
      }
      // Bit j set disagrees with W_j < 0, clear with W_j > 0: setting it adds -W_j.
      for (std::size_t bit = 0; bit < 4; ++bit)
        for (std::size_t value = 0, one = std::size_t{1} << bit; value < one; ++value)
          sums[one + value] = sums[value] - own[bit];
    }
    for (std::size_t j = 0; j < bits; ++j) total += std::abs(static_cast<std::int64_t>(weights[j]));
    for (std::size_t j = 0; j < job.side; ++j) {
      const std::int32_t weight = job.side_weights[query * job.side + j];
      side_weights.push_back(weight);
      std::int32_t* sums = &sums_[32 * (bytes + j)];
      for (std::int32_t value = 0; value < 16; ++value) {
        sums[value] = 16 * value * weight;
        sums[16 + value] = value * weight;
      }
      side_total += 255 * static_cast<std::int64_t>(weight);
    }
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

  std::int64_t total = 0;       // T
  std::int64_t side_total = 0;  // the most that side bytes add to D
  std::vector<std::int32_t> side_weights;

 private:
  std::vector<std::int32_t> sums_;
};

// The score of code i, in the one order of operations that everything compares with.
inline double exact_score(const ScanJob& job, const ExactTables& tables, double unit, double offset, std::size_t i) {
  const std::uint8_t* code = job.blocks + i / scan_block * scan_block * job.bytes + i % scan_block;
  const std::int64_t d = tables.disagreement(code, scan_block);
  if (!job.terms()) {
    if (!job.cells) return static_cast<double>(d);
    const double product = static_cast<double>(d) * unit;
    return offset + product;
  }
  const double s = static_cast<double>(tables.total - 2 * d) * unit;
  double scale, bias;
  if (job.reach_bytes) {
    const double reach = job.reach_step * job.reach_bytes[i], extra = job.bias_step * job.bias_bytes[i];
    scale = -0.5 / (job.reach_low + reach);
    bias = job.bias_low + extra;
  } else {
    scale = job.scale[i];
    bias = job.bias ? job.bias[i] : job.bias0;
  }
  const double product = scale * s;
  const double term = bias + product;
  const double score = job.cells ? offset + term : term;
  return score == score ? score : std::numeric_limits<double>::infinity();  // 0 * infinity: of no order, so the last
}

struct Candidate {
  double score;
  std::int64_t id;
  bool operator<(const Candidate& other) const {
    return score < other.score || (score == other.score && id < other.id);
  }
};

// The k least candidates seen: a reservoir of a few more, cut back to k when it is full or when its bound is asked for.
class Best {
 public:
  explicit Best(std::size_t k) : k_(k) { found_.reserve(std::min<std::size_t>(2 * k + 64, 1024)); }

  // The score of the k-th: no candidate with a greater score can enter, nor one of equal score and greater id.
  double bound() {
    // A cut costs a pass over all: it waits until the bound has something to gain.
    if (found_.size() > k_ + k_ / 8 || (found_.size() >= k_ && bound_.score == none_)) cut();
    return bound_.score;
  }

  // False where it is not among the best.
  bool offer(Candidate candidate) {
    if (!(candidate < bound_) && found_.size() >= k_) return false;
    found_.push_back(candidate);
    if (found_.size() >= 2 * k_ + 64) cut();
    return true;
  }

  // Only the k least are kept.
  void cut() {
    if (k_ == 0 || found_.size() < k_) return;
    const auto last = found_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(found_.begin(), last, found_.end());
    bound_ = *last;
    found_.erase(last + 1, found_.end());
  }

  // All of another's candidates for the same query, whatever their ids.
  void merge(const Best& other) { found_.insert(found_.end(), other.found_.begin(), other.found_.end()); }

  void write(double* scores, std::int64_t* ids) {
    const std::size_t count = std::min(k_, found_.size());
    std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(count), found_.end());
    for (std::size_t i = 0; i < k_; ++i) {
      scores[i] = i < count ? found_[i].score : std::numeric_limits<double>::infinity();
      ids[i] = i < count ? found_[i].id : -1;
    }
  }

 private:
  std::size_t k_;
  static constexpr double none_ = std::numeric_limits<double>::infinity();
  Candidate bound_{none_, -1};
  std::vector<Candidate> found_;
};

}  // namespace antisparse
