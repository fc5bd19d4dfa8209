// One query of a scan: exact scores by 4-bit tables, and the k best so far.
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including query.hpp"
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

#include "scan.hpp"

namespace antisparse::ANTISPARSE_ISA {

// For every 4 bits what they add to D, exactly: the sum of |W_j| over those that disagree with the sign of W_j, or what
// a word's weight is below the greatest.
class ExactTables {
 public:
  explicit ExactTables(const ScanJob& job) : side_weights(job.side), words_(job.words), sums_(job.bytes * 32) {}

  void fill(const ScanJob& job, std::size_t query) {
    const std::int32_t* weights = job.weights + query * job.columns();
    const std::size_t bits = job.bits, bytes = job.bytes - job.side;
    const std::size_t whole = bits / 4, all = 2 * bytes - job.nibble;
    total = most = side_total = 0;
    for (std::size_t nibble = 0; nibble < whole; ++nibble) {
      if (words_)
        fill_words(weights + 16 * nibble, &sums_[16 * nibble]);
      else
        fill_nibble(weights + 4 * nibble, &sums_[16 * nibble]);
    }
    for (std::size_t nibble = whole; nibble < all; ++nibble) {
      std::int32_t own[4] = {};  // padding never counts
      if (nibble == whole) std::copy(weights + 4 * whole, weights + bits, own);
      fill_nibble(own, &sums_[16 * nibble]);
    }
    if (!words_) {
      for (std::size_t j = 0; j < bits; ++j) total += std::abs(static_cast<std::int64_t>(weights[j]));
      most = total;
    }
    for (std::size_t j = 0; j < job.side; ++j) {
      const std::int32_t weight = job.side_weights[query * job.side + j];
      side_weights[j] = weight;
      std::int32_t* sums = &sums_[32 * (bytes + j)];
      for (std::int32_t value = 0; value < 16; ++value) {
        sums[value] = 16 * value * weight;
        sums[16 + value] = value * weight;
      }
      side_total += 255 * static_cast<std::int64_t>(weight);
    }
    if (!job.nibble) return;
    const std::int32_t* numbers = job.side_weights + query * job.visited();
    side_total = 15 * static_cast<std::int64_t>(*std::max_element(numbers, numbers + job.visited()));
    weigh_number(job, query, 0);
  }

  // The last nibble as the number that it is in a cell (or probe).
  void weigh_number(const ScanJob& job, std::size_t query, std::size_t cell) {
    const std::int32_t weight = job.side_weights[query * job.visited() + cell];
    std::int32_t* sums = &sums_[sums_.size() - 16];
    for (std::int32_t value = 0; value < 16; ++value) sums[value] = value * weight;
  }

  // D of code i.
  std::int64_t disagreement(const ScanJob& job, std::size_t i) const {
    const std::uint8_t* code = job.blocks + i / scan_block * scan_block * job.bytes + i % scan_block;
    std::int64_t sum = 0;
    const std::int32_t* table = sums_.data();
    for (std::size_t j = 0; j < job.bytes; ++j, table += 32) {
      const std::uint8_t byte = code[j * scan_block];
      sum += table[byte >> 4] + table[16 + (byte & 15)];
    }
    return sum;
  }

  // The 16 sums of one nibble.
  const std::int32_t* nibble(std::size_t i) const { return &sums_[16 * i]; }
  std::size_t nibbles() const { return sums_.size() / 16; }
  // The greatest sum of a nibble that is no side byte's, at least 1. Of signs, what any two opposite ones add up to.
  std::int32_t largest() const {
    std::int32_t found = 1;
    for (std::size_t i = 0; i < nibbles() - 2 * side_weights.size(); ++i) {
      const std::int32_t* own = nibble(i);
      found = std::max(found, words_ ? *std::max_element(own, own + 16) : own[0] + own[15]);
    }
    return found;
  }

  std::int64_t total = 0;       // T
  std::int64_t most = 0;        // the greatest D that bits can have
  std::int64_t side_total = 0;  // the most that side bytes add to D
  std::vector<std::int32_t> side_weights;

 private:
  // From the weights of the bits of value 8, 4, 2, 1. Bit j set disagrees with W_j < 0, clear with W_j > 0: setting it
  // adds -W_j.
  static void fill_nibble(const std::int32_t* own, std::int32_t* sums) {
    const std::int32_t none = std::max(own[0], 0) + std::max(own[1], 0) + std::max(own[2], 0) + std::max(own[3], 0);
#ifdef ANTISPARSE_TARGET_AVX2
    const auto where = [](std::int32_t weight, __m256i set) {
      return _mm256_and_si256(_mm256_set1_epi32(weight), set);
    };
    __m256i eight = _mm256_set1_epi32(none);
    eight = _mm256_sub_epi32(eight, where(own[1], _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1)));
    eight = _mm256_sub_epi32(eight, where(own[2], _mm256_setr_epi32(0, 0, -1, -1, 0, 0, -1, -1)));
    eight = _mm256_sub_epi32(eight, where(own[3], _mm256_setr_epi32(0, -1, 0, -1, 0, -1, 0, -1)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), eight);
    eight = _mm256_sub_epi32(eight, _mm256_set1_epi32(own[0]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 8), eight);
#else
    sums[0] = none;
    sums[1] = sums[0] - own[3];
    for (std::size_t value = 0; value < 2; ++value) sums[2 + value] = sums[value] - own[2];
    for (std::size_t value = 0; value < 4; ++value) sums[4 + value] = sums[value] - own[1];
    for (std::size_t value = 0; value < 8; ++value) sums[8 + value] = sums[value] - own[0];
#endif
  }

  // From the weights of 16 words.
  void fill_words(const std::int32_t* own, std::int32_t* sums) {
    const auto [low, high] = std::minmax_element(own, own + 16);
    for (std::size_t value = 0; value < 16; ++value) sums[value] = *high - own[value];
    total += 2 * static_cast<std::int64_t>(*high);
    most += *high - *low;
  }

  bool words_;
  std::vector<std::int32_t> sums_;
};

// The score of code i, whose disagreement is d, in the one order of operations that everything compares with.
inline double exact_score(const ScanJob& job, const ExactTables& tables, double unit, double offset, std::size_t i,
                          std::int64_t d) {
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

// The k least candidates seen. Few are kept in order; many in a reservoir of a few more, cut back to k when it is full
// or when its bound is asked for.
class Best {
 public:
  explicit Best(std::size_t k) : k_(k) { found_.reserve(std::min<std::size_t>(2 * k + 64, 1024)); }

  void clear() {
    found_.clear();
    bound_ = {none_, -1};
  }

  // The score of the k-th: no candidate with a greater score can enter, nor one of equal score and greater id.
  double bound() {
    // A cut costs a pass over all: it waits until the bound has something to gain.
    if (found_.size() > k_ + k_ / 8 || (found_.size() >= k_ && bound_.score == none_)) cut();
    return bound_.score;
  }

  // Whether a candidate of this score may enter, by what is known without a cut.
  bool admits(double score) const { return !(score > bound_.score); }

  void offer(Candidate candidate) {
    if (!(candidate < bound_) && found_.size() >= k_) return;
    if (k_ > few_) {
      found_.push_back(candidate);
      if (found_.size() >= 2 * k_ + 64) cut();
      return;
    }
    if (found_.size() < k_) found_.push_back(candidate);
    std::size_t i = found_.size() - 1;
    for (; i > 0 && candidate < found_[i - 1]; --i) found_[i] = found_[i - 1];
    found_[i] = candidate;
    if (found_.size() == k_) bound_ = found_.back();
  }

  // Only the k least are kept.
  void cut() {
    if (k_ == 0 || found_.size() < k_) return;
    const auto last = found_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(found_.begin(), last, found_.end());
    bound_ = *last;
    found_.erase(last + 1, found_.end());
  }

  // All of another's candidates for the same query, whatever their ids; nothing but `write` comes after it.
  void merge(const Best& other) { found_.insert(found_.end(), other.found_.begin(), other.found_.end()); }

  void write(double* scores, std::int64_t* ids) {
    const std::size_t count = std::min(k_, found_.size());
    std::partial_sort(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(count), found_.end());
    for (std::size_t i = 0; i < k_; ++i) {
      scores[i] = i < count ? found_[i].score : none_;
      ids[i] = i < count ? found_[i].id : -1;
    }
  }

 private:
  static constexpr std::size_t few_ = 20;
  static constexpr double none_ = std::numeric_limits<double>::infinity();
  std::size_t k_;
  Candidate bound_{none_, -1};
  std::vector<Candidate> found_;
};

}  // namespace antisparse::ANTISPARSE_ISA
