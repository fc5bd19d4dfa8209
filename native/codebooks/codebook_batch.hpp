// The search for codewords. Correlations are computed for some vectors at a time. For each vector every codebook in
// turn chooses the best codeword, given those chosen before it. Then the best move is made, one at a time, even where
// it loses (tabu search), and the best codewords met are kept. A move costs one pass over two rows of G, which looks
// for the next move on its way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "codebooks/codebooks.hpp"
#include "codebooks/sixteen.hpp"
#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "machine/simd.hpp"
#include "machine/threads.hpp"

namespace antisparse::ANTISPARSE_ISA {

// The search for one vector's codewords, with costs T: float, or integers of 16 bits, which take half the time.
template <class T>
class CodewordMoves {
 public:
  CodewordMoves(const CodebookJob& job, const T* rows)
      : job_(job),
        frame_(*job.frame),
        rows_(rows),
        cost_(frame_.columns),
        barred_(frame_.columns),
        none_(frame_.columns),
        chosen_(frame_.books),
        recent_(std::min(job.tenure, (frame_.books + 1) / 3)) {}

  // The column of every codebook's codeword.
  const std::vector<std::size_t>& find(const float* correlations) {
    start(correlations);
    std::fill(recent_.begin(), recent_.end(), frame_.books);
    next_ = 0;
    losing_ = false;
    since_.clear();
    change_ = least_change_ = 0;
    from_ = to_ = none_.data();
    for (std::size_t i = 0; i < job_.moves; ++i)
      if (!step()) break;
    for (; !since_.empty(); since_.pop_back()) chosen_[since_.back() / codewords] = since_.back();  // the best met
    return chosen_;
  }

 private:
  static constexpr bool integers = std::is_integral_v<T>;
  static constexpr T never = std::numeric_limits<T>::max(), always = std::numeric_limits<T>::lowest();
  using Change = std::conditional_t<integers, std::int32_t, T>;
  using Costs = Sixteen<T>;

  // Every codebook takes the best codeword for those before it.
  void start(const float* correlations) {
    const std::size_t columns = frame_.columns;
    const float* const half = frame_.half.data();
    T* const cost = cost_.data();
    const float factor = 1 / frame_.unit;
    for (std::size_t i = 0; i < columns; ++i) {
      const float exact = half[i] - correlations[i];
      constexpr float shift = 3 << 22;  // rounds to the nearest integer, in a form that compilers vectorise
      cost[i] = integers ? static_cast<T>(static_cast<std::int32_t>((exact * factor + shift) - shift)) : exact;
    }
    std::fill_n(barred_.data(), columns, always);
    for (std::size_t j = 0; j < frame_.books; ++j, tick(columns)) {
      LeastSixteen<T> best;
      best.offer(Costs::load(cost + j * codewords), Costs::all(static_cast<T>(j)));
      chosen_[j] = best.where();
      barred_[chosen_[j]] = never;
      const T* row = rows_ + chosen_[j] * columns;
      for (std::size_t i = 0; i < columns; i += codewords)
        (Costs::load(cost + i) + Costs::load(row + i)).store(cost + i);
    }
  }

  // The move that changes the cost least; on the way costs follow the last move.
  LeastSixteen<T> scan() {
    LeastSixteen<T> best;
    const Costs one = Costs::all(1);
    Costs group = Costs::all(0);
    // Copies of members, which a compiler would read again after every vector written.
    T* const cost = cost_.data();
    const T *const barred = barred_.data(), *const from = from_, *const to = to_;
    const std::size_t *const chosen = chosen_.data(), books = frame_.books;
    for (std::size_t j = 0; j < books; ++j, group = group + one) {
      const std::size_t i = j * codewords;
      const Costs moved = Costs::load(cost + i) + (Costs::load(to + i) - Costs::load(from + i));
      moved.store(cost + i);
      best.offer(max(moved - Costs::all(cost[chosen[j]]), Costs::load(barred + i)), group);
    }
    return best;
  }

  // False where no codebook may move, or, without tenure, no move gains.
  bool step() {
    tick(2 * frame_.columns);
    const LeastSixteen<T> found = scan();
    from_ = to_ = none_.data();
    if (!(found.value() < (recent_.empty() ? 0 : never))) return false;
    const std::size_t i = found.where(), j = i / codewords, last = chosen_[j];
    const Change gain = static_cast<Change>(cost_[i]) - cost_[last];  // of which scan() may have had a part
    chosen_[j] = i;
    from_ = rows_ + last * frame_.columns;
    to_ = rows_ + i * frame_.columns;
    losing_ = losing_ || !(gain < 0);  // while moves gain, none is barred: they end at least as well as without tenure
    if (recent_.empty() || !losing_) {
      barred_[last] = always;
      barred_[i] = never;
    } else {
      std::size_t& oldest = recent_[next_];
      next_ = next_ + 1 == recent_.size() ? 0 : next_ + 1;
      if (oldest < frame_.books) {
        std::fill_n(&barred_[oldest * codewords], codewords, always);
        barred_[chosen_[oldest]] = never;
      }
      std::fill_n(&barred_[j * codewords], codewords, never);
      oldest = j;
    }
    change_ += gain;
    since_.push_back(last);
    // A gain that rounding of floats could have made is none.
    const Change slack = integers ? 0 : static_cast<Change>(1e-6f * std::fabs(static_cast<float>(least_change_)));
    if (change_ < least_change_ - slack) {
      least_change_ = change_;
      since_.clear();
    }
    return true;
  }

  const CodebookJob& job_;
  const CodebookFrame& frame_;
  const T* rows_;                            // of G, without the products of codewords of one codebook
  Aligned<T> cost_, barred_, none_;          // by column; barred: `never` where a move may not go
  std::vector<std::size_t> chosen_;          // the column of each codebook
  const T *from_ = nullptr, *to_ = nullptr;  // rows: the last move, not yet in the costs
  Change change_ = 0, least_change_ = 0;     // of the cost, now and at its best
  std::vector<std::size_t> recent_;          // the codebooks that moved last, as a ring
  std::size_t next_ = 0;
  bool losing_ = false;             // some move lost
  std::vector<std::size_t> since_;  // the columns left since the best codewords met
};

// A thread's share of a CodebookJob.
class CodewordSearch {
 public:
  static constexpr std::size_t tile = 6, group = 8 * tile;  // vectors that share a load; vectors a task

  explicit CodewordSearch(const CodebookJob& job)
      : job_(job),
        frame_(*job.frame),
        y_(group * frame_.d),
        correlations_(group * frame_.columns),
        integers_(job, frame_.rounded.data()),
        floats_(job, frame_.products.data()) {}

  void run(std::size_t task) {
    const std::size_t first = task * group, count = std::min(group, job_.n - first), d = frame_.d;
    for (std::size_t v = 0; v < count; ++v) {
      const double* y = job_.y + (first + v) * d;
      double largest = 0;
      for (std::size_t i = 0; i < d; ++i) largest = std::max(largest, std::abs(y[i]));
      // A vector far beyond its codewords has those of its direction, and float would overflow.
      constexpr double limit = 1e15;
      const double factor = std::min(job_.factor, limit / largest);
      for (std::size_t i = 0; i < d; ++i) y_[v * d + i] = static_cast<float>(y[i] * factor);
    }
    for (std::size_t j = 0; j < frame_.books; ++j)
      for (std::size_t v = 0; v < count; v += tile, tick(tile * codewords * d))
        combine_panel<float, tile>(&correlations_[v * frame_.columns + j * codewords], frame_.columns,
                                   &frame_.panels[j * d * codewords], &y_[v * d], d, d);
    for (std::size_t v = 0; v < count; ++v) vector(first + v, &y_[v * d], &correlations_[v * frame_.columns]);
  }

 private:
  using P = Pack<float>;

  void vector(std::size_t row, const float* y, const float* correlations) {
    if (frame_.integers && fits(correlations)) {
      write(row, integers_.find(correlations), correlations);
      float square = 0;
      for (std::size_t i = 0; i < frame_.d; ++i) square += y[i] * y[i];
      if (square - 2 * job_.dot[row] + job_.squared_norm[row] >= frame_.least_error) return;
    }
    write(row, floats_.find(correlations), correlations);
  }

  // Whether costs have room as integers.
  bool fits(const float* correlations) const {
    P low = P::all(0), high = low;
    for (std::size_t i = 0; i < frame_.columns; i += P::lanes) {
      const P c = P::load(correlations + i), half = P::load(&frame_.half[i]);
      low = min(half - c, low);
      high = min(c - half, high);
    }
    return -std::min(least(low), least(high)) <= frame_.largest_sum;
  }

  void write(std::size_t row, const std::vector<std::size_t>& chosen, const float* correlations) {
    std::uint8_t* bits = job_.bits + row * ((frame_.books + 1) / 2);
    std::fill_n(bits, (frame_.books + 1) / 2, std::uint8_t{0});
    float dot = 0;
    for (std::size_t j = 0; j < frame_.books; ++j) {
      bits[j / 2] |= static_cast<std::uint8_t>(chosen[j] % codewords << (j % 2 ? 0 : 4));
      dot += correlations[chosen[j]];
    }
    constexpr std::size_t packs = alignment / sizeof(float) / P::lanes;
    P square = P::all(0);
    for (std::size_t k = 0; k < frame_.stride; k += packs * P::lanes) {
      P rebuilt[packs];
      std::fill_n(rebuilt, packs, P::all(0));
      for (const std::size_t i : chosen) {
        const float* codeword = &frame_.rows[i * frame_.stride + k];
        for (std::size_t p = 0; p < packs; ++p) rebuilt[p] = rebuilt[p] + P::load(codeword + p * P::lanes);
      }
      for (const P part : rebuilt) square = fma(part, part, square);
    }
    job_.dot[row] = dot;
    job_.squared_norm[row] = sum(square);
  }

  const CodebookJob& job_;
  const CodebookFrame& frame_;
  Aligned<float> y_, correlations_;  // of a task's vectors
  CodewordMoves<std::int16_t> integers_;
  CodewordMoves<float> floats_;
};

inline void find_codewords(const CodebookJob& job) {
  run_tasks((job.n + CodewordSearch::group - 1) / CodewordSearch::group, job.threads,
            [&] { return [search = CodewordSearch(job)](std::size_t task) mutable { search.run(task); }; });
}

}  // namespace antisparse::ANTISPARSE_ISA
