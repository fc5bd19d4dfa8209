// The k best candidates of a query.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "scan/order.hpp"

namespace antisparse::ANTISPARSE_ISA {

// The k least candidates seen. Few are kept in order; many in a reservoir of a few more, cut back to k when it is full
// or when its bound is asked for.
class Best {
 public:
  Best(std::size_t k, std::vector<Candidate>& spare) : k_(k), spare_(spare) {
    found_.reserve(std::min<std::size_t>(2 * k + 64, 1024));
  }

  void clear() {
    found_.clear();
    bound_ = no_bound_;
    assumed_ = false;
  }

  // Only candidates below a score count from here on, though nobody knows whether k are: `sure` says so in the end.
  void assume(double score) {
    bound_ = {score, -1};
    assumed_ = true;
  }
  bool sure() const { return !assumed_ || found_.size() >= k_; }

  // The score of the k-th: no candidate with a greater score can enter, nor one of equal score and greater id.
  double bound() {
    // A cut costs a pass over all: it waits until the bound has something to gain.
    if (found_.size() > k_ + k_ / 2 || (found_.size() >= k_ && bound_.score == none_)) cut();
    return bound_.score;
  }

  // Whether a candidate of this score may enter, by what is known without a cut.
  bool admits(double score) const { return !(score > bound_.score); }

  void offer(Candidate candidate) {
    if (!(candidate < bound_)) return;
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

  // Only the k least are kept. Few are in order already, which must stay so.
  void cut() {
    if (k_ <= few_ || found_.size() < k_) return;
    if (found_.size() > k_)
      bound_ = keep_least(found_, k_, spare_);
    else
      bound_ = *std::max_element(found_.begin(), found_.end());
  }

  // All of another's candidates for the same query, whatever their ids; nothing but `write` comes after it.
  void merge(const Best& other) { found_.insert(found_.end(), other.found_.begin(), other.found_.end()); }

  void write(double* scores, std::int64_t* ids) {
    if (found_.size() > k_ + k_ / 2) cut();
    sort_candidates(found_, spare_);
    const std::size_t count = std::min(found_.size(), k_);
    for (std::size_t i = 0; i < k_; ++i) {
      scores[i] = i < count ? found_[i].score : none_;
      ids[i] = i < count ? found_[i].id : -1;
    }
  }

 private:
  static constexpr std::size_t few_ = 20;
  static constexpr double none_ = std::numeric_limits<double>::infinity();
  static constexpr Candidate no_bound_{none_, std::numeric_limits<std::int64_t>::max()};  // no id is as great
  std::size_t k_;
  Candidate bound_ = no_bound_;
  bool assumed_ = false;
  std::vector<Candidate> found_;
  std::vector<Candidate>& spare_;  // memory that others use, too
};

}  // namespace antisparse::ANTISPARSE_ISA
