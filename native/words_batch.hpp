// The search for words: the correlations of some vectors at a time; for each, every group in turn takes the best for
// those before it; then the best move at a time, even where it loses (tabu), with the best words met kept. A move costs
// one pass over two rows of G, which looks for the next on its way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "aligned.hpp"
#include "linear.hpp"
#include "simd.hpp"
#include "threads.hpp"
#include "words.hpp"

namespace antisparse::ANTISPARSE_ISA {

// A, and G by rows, without the products of words of one group, which are never chosen together.
class WordFrame {
 public:
  explicit WordFrame(const WordJob& job)
      : groups(job.groups),
        columns(word_count * job.groups),
        panels_(columns * job.d),
        gram_(columns * columns),
        half_(columns) {
    std::copy_n(job.frame, panels_.size(), panels_.data());
    for (std::size_t i = 0; i < columns; ++i) {
      std::copy_n(job.gram + i * columns, columns, &gram_[i * columns]);
      std::fill_n(&gram_[i * columns + i / word_count * word_count], word_count, 0.0f);
      half_[i] = job.gram[i * columns + i] / 2;
    }
  }

  const float* panel(std::size_t group) const { return &panels_[group * panels_.size() / groups]; }
  const float* row(std::size_t i) const { return &gram_[i * columns]; }
  const float* halves() const { return half_.data(); }  // of the diagonal

  const std::size_t groups, columns;

 private:
  Aligned<float> panels_, gram_, half_;
};

// A thread's share of a WordJob.
class WordSearch {
 public:
  static constexpr std::size_t tile = 6, group = 8 * tile;  // vectors that share a load; vectors a task

  WordSearch(const WordJob& job, const WordFrame& frame)
      : job_(job),
        frame_(frame),
        y_(group * job.d),
        correlations_(group * frame.columns),
        cost_(frame.columns),
        barred_(frame.columns),
        none_(frame.columns),
        chosen_(frame.groups),
        recent_(std::min(job.tenure, (frame.groups + 1) / 3)) {}

  void run(std::size_t task) {
    const std::size_t first = task * group, count = std::min(group, job_.n - first);
    for (std::size_t v = 0; v < count; ++v) {
      const double* y = job_.y + (first + v) * job_.d;
      double largest = 0;
      for (std::size_t i = 0; i < job_.d; ++i) largest = std::max(largest, std::abs(y[i]));
      // A vector far beyond its words has those of its direction, and float would overflow.
      constexpr double limit = 1e15;
      const double factor = std::min(job_.factor, limit / largest);
      for (std::size_t i = 0; i < job_.d; ++i) y_[v * job_.d + i] = static_cast<float>(y[i] * factor);
    }
    for (std::size_t j = 0; j < frame_.groups; ++j)
      for (std::size_t v = 0; v < count; v += tile)
        combine_panel<float, tile>(&correlations_[v * frame_.columns + j * word_count], frame_.columns, frame_.panel(j),
                                   &y_[v * job_.d], job_.d, job_.d);
    for (std::size_t v = 0; v < count; ++v) vector(first + v, &correlations_[v * frame_.columns]);
  }

 private:
  using P = Pack<float>;
  static constexpr float never = std::numeric_limits<float>::infinity();

  void vector(std::size_t row, const float* correlations) {
    start(correlations);
    std::fill(recent_.begin(), recent_.end(), frame_.groups);
    next_ = 0;
    losing_ = false;
    since_.clear();
    change_ = least_change_ = 0;
    from_ = to_ = none_.data();
    for (std::size_t i = 0; i < job_.moves; ++i)
      if (!step()) break;
    for (; !since_.empty(); since_.pop_back()) chosen_[since_.back() / word_count] = since_.back();  // the best met
    write(row, correlations);
  }

  // The cost of a word, given those of other groups: G_ii / 2 - c_i + sum of G_ij over theirs.
  void start(const float* correlations) {
    for (std::size_t i = 0; i < frame_.columns; ++i) cost_[i] = frame_.halves()[i] - correlations[i];
    std::fill_n(barred_.data(), frame_.columns, 0.0f);
    for (std::size_t j = 0; j < frame_.groups; ++j) {
      const float* own = &cost_[j * word_count];
      chosen_[j] = static_cast<std::size_t>(std::min_element(own, own + word_count) - cost_.data());
      barred_[chosen_[j]] = never;
      const float* row = frame_.row(chosen_[j]);
      for (std::size_t i = 0; i < frame_.columns; i += P::lanes)
        (P::load(&cost_[i]) + P::load(row + i)).store(&cost_[i]);
    }
  }

  // The least value in each lane, and where.
  struct Least {
    P low = P::all(never), where = P::all(0);
    void offer(P value, P at) {
      where = select(value < low, at, where);
      low = min(value, low);
    }
  };

  // The move that changes the cost least; on the way costs follow the last move.
  Least scan() {
    Least chains[2];  // which do not wait for each other
    const P step = P::all(P::lanes);
    P at = P::count();
    float* cost = cost_.data();
    for (std::size_t j = 0; j < frame_.groups; ++j) {
      constexpr std::size_t packs = word_count / P::lanes;
      const std::size_t first = j * word_count;
      P moved[packs];
      for (std::size_t p = 0; p < packs; ++p) {
        const std::size_t i = first + p * P::lanes;
        moved[p] = P::load(cost + i) + (P::load(to_ + i) - P::load(from_ + i));
        moved[p].store(cost + i);
      }
      const P own = P::all(cost[chosen_[j]]);
      for (std::size_t p = 0; p < packs; ++p, at = at + step)
        chains[p % 2].offer(moved[p] - own + P::load(&barred_[first + p * P::lanes]), at);
    }
    const Least &even = chains[0], &odd = chains[1];
    const P less = odd.low < even.low, more = even.low < odd.low;
    const P before = min(even.where, odd.where);  // the first of equals
    return {min(even.low, odd.low), select(less, odd.where, select(more, even.where, before))};
  }

  // False where no group may move, or, without tenure, no move gains.
  bool step() {
    const Least found = scan();
    from_ = to_ = none_.data();
    const float gain = least(found.low);
    if (!(gain < (recent_.empty() ? 0 : never))) return false;
    const auto i = static_cast<std::size_t>(least(select(P::all(gain) < found.low, P::all(never), found.where)));
    const std::size_t j = i / word_count, last = chosen_[j];
    chosen_[j] = i;
    from_ = frame_.row(last);
    to_ = frame_.row(i);
    losing_ = losing_ || !(gain < 0);  // while moves gain, none is barred: they end at least as well as without tenure
    if (recent_.empty() || !losing_) {
      barred_[last] = 0;
      barred_[i] = never;
    } else {
      std::size_t& oldest = recent_[next_];
      next_ = next_ + 1 == recent_.size() ? 0 : next_ + 1;
      if (oldest < frame_.groups) {
        std::fill_n(&barred_[oldest * word_count], word_count, 0.0f);
        barred_[chosen_[oldest]] = never;
      }
      std::fill_n(&barred_[j * word_count], word_count, never);
      oldest = j;
    }
    change_ += gain;
    since_.push_back(last);
    // A gain that rounding could have made is none.
    if (change_ < least_change_ - 1e-6f * std::fabs(least_change_)) {
      least_change_ = change_;
      since_.clear();
    }
    return true;
  }

  void write(std::size_t row, const float* correlations) {
    std::uint8_t* bits = job_.bits + row * ((frame_.groups + 1) / 2);
    std::fill_n(bits, (frame_.groups + 1) / 2, std::uint8_t{0});
    double along = 0, size = 0;
    for (std::size_t j = 0; j < frame_.groups; ++j) {
      const std::size_t i = chosen_[j];
      bits[j / 2] |= static_cast<std::uint8_t>(i % word_count << (j % 2 ? 0 : 4));
      along += correlations[i];
      float products = 2 * frame_.halves()[i];
      const float* of_word = frame_.row(i);
      for (std::size_t k = 0; k < frame_.groups; ++k) products += of_word[chosen_[k]];
      size += products;
    }
    job_.along[row] = static_cast<float>(along);
    job_.size[row] = static_cast<float>(size);
  }

  const WordJob& job_;
  const WordFrame& frame_;
  Aligned<float> y_, correlations_;              // of a task's vectors
  Aligned<float> cost_, barred_, none_;          // by column; barred: infinity where a move may not go
  std::vector<std::size_t> chosen_;              // the column of each group
  const float *from_ = nullptr, *to_ = nullptr;  // rows of G: the last move, not yet in the costs
  float change_ = 0, least_change_ = 0;          // of the cost, now and at its best
  std::vector<std::size_t> recent_;              // the groups that moved last, as a ring
  std::size_t next_ = 0;
  bool losing_ = false;             // some move lost
  std::vector<std::size_t> since_;  // the columns left since the best words met
};

inline void find_words(const WordJob& job) {
  const WordFrame frame(job);
  run_tasks((job.n + WordSearch::group - 1) / WordSearch::group, job.threads,
            [&] { return [search = WordSearch(job, frame)](std::size_t task) mutable { search.run(task); }; });
}

}  // namespace antisparse::ANTISPARSE_ISA
