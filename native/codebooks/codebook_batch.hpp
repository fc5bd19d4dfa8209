// The search for codewords. Correlations are computed for some vectors at a time. For each vector every codebook in
// turn chooses the best codeword, given those chosen before it. Then the best move is made, one at a time, even where
// it loses (tabu search), and the best codewords met are kept. A move costs one pass over two rows of G, which looks
// for the next move on its way. Two vectors are searched by turns.
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
        cost_(frame_.columns + beyond),
        barred_(frame_.columns + beyond),
        none_(frame_.columns + beyond),
        chosen_(frame_.books),
        recent_(std::min(job.tenure, (frame_.books + 1) / 3)) {
    std::fill_n(&barred_[frame_.columns], beyond, never);
  }

  // Every codebook has the best codeword for those before it; no move yet.
  void begin(const float* correlations) {
    start(correlations);
    std::fill(recent_.begin(), recent_.end(), frame_.books);
    next_ = 0;
    losing_ = false;
    since_.clear();
    change_ = least_change_ = 0;
    from_ = to_ = none_.data();
  }

  // Makes the best move. False where no codebook may move, or, without tenure, no move gains.
  bool step() {
    tick(2 * frame_.columns);
    const Least found = scan();
    from_ = to_ = none_.data();
    if (!(found.value() < (recent_.empty() ? 0 : never))) return false;
    move(found.where());
    return true;
  }

  // The column of every codebook's codeword, the best met.
  const Chosen<T>& end() {
    for (; !since_.empty(); since_.pop_back()) chosen_.set(since_.back() / codewords, since_.back());
    return chosen_;
  }

 private:
  using Costs = typename Chosen<T>::Costs;
  using Least = typename Chosen<T>::Least;
  static constexpr std::size_t wide = Chosen<T>::books, beyond = (wide - 1) * codewords;
  static constexpr bool integers = std::is_integral_v<T>;
  static constexpr T never = std::numeric_limits<T>::max(), always = std::numeric_limits<T>::lowest();
  using Change = std::conditional_t<integers, std::int32_t, T>;

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
      best.offer(Sixteen<T>::load(cost + j * codewords), Sixteen<T>::all(static_cast<T>(j)));
      chosen_.set(j, best.where());
      barred_[chosen_[j]] = never;
      const T* row = rows_ + chosen_[j] * columns;
      for (std::size_t i = 0; i < columns; i += wide * codewords)
        (Costs::load(cost + i) + Costs::load(row + i)).store(cost + i);
    }
  }

  // The move that changes the cost least; on the way costs follow the last move.
  Least scan() {
    Least best;
    const Costs one = Costs::all(1);
    Costs group = Costs::all(0);
    // Copies of members, which a compiler would read again after every vector written.
    T* const cost = cost_.data();
    const T *const barred = barred_.data(), *const from = from_, *const to = to_;
    const auto chosen = chosen_.view();
    const std::size_t books = frame_.books;
    for (std::size_t j = 0; j < books; j += wide, group = group + one) {
      const std::size_t i = j * codewords;
      const Costs moved = Costs::load(cost + i) + (Costs::load(to + i) - Costs::load(from + i));
      moved.store(cost + i);
      best.offer(max(moved - chosen.costs(moved, cost, j), Costs::load(barred + i)), group);
    }
    return best;
  }

  // Codebook i / 16 takes column i.
  void move(std::size_t i) {
    const std::size_t j = i / codewords, last = chosen_[j];
    const Change gain = static_cast<Change>(cost_[i]) - cost_[last];  // of which scan() may have had a part
    chosen_.set(j, i);
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
  }

  const CodebookJob& job_;
  const CodebookFrame& frame_;
  const T* rows_;                            // of G, without the products of codewords of one codebook
  Aligned<T> cost_, barred_, none_;          // by column; barred: `never` where a move may not go, as beyond the last
  Chosen<T> chosen_;                         // the column of each codebook
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
  static constexpr std::size_t tile = panel_tile, group = 48;  // vectors that share a load; vectors a task
  static_assert(group % tile == 0);

  explicit CodewordSearch(const CodebookJob& job)
      : job_(job),
        frame_(*job.frame),
        y_(group * frame_.d),
        correlations_(group * frame_.columns),
        integers_{{job, frame_.rounded.data()}, {job, frame_.rounded.data()}},
        floats_{{job, frame_.products.data()}, {job, frame_.products.data()}} {}

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
    small_.clear();
    large_.clear();
    for (std::size_t v = 0; v < count; ++v) (frame_.integers && fits(correlations(v)) ? small_ : large_).push_back(v);
    find(integers_, small_, first);
    for (const std::size_t v : small_)
      if (!exact_enough(first + v, &y_[v * d])) large_.push_back(v);
    find(floats_, large_, first);
  }

 private:
  using P = Pack<float>;

  // Writes the codewords of vectors, of two at a time, by turns: a move waits for the one before it.
  template <class T>
  void find(CodewordMoves<T> (&moves)[2], const std::vector<std::size_t>& vectors, std::size_t first) {
    for (std::size_t at = 0; at < vectors.size(); at += 2) {
      const std::size_t both = std::min<std::size_t>(2, vectors.size() - at);
      bool going[2] = {true, both == 2};
      for (std::size_t k = 0; k < both; ++k) moves[k].begin(correlations(vectors[at + k]));
      for (std::size_t i = 0; i < job_.moves && (going[0] || going[1]); ++i)
        for (std::size_t k = 0; k < 2; ++k) going[k] = going[k] && moves[k].step();
      for (std::size_t k = 0; k < both; ++k)
        write(first + vectors[at + k], moves[k].end(), correlations(vectors[at + k]));
    }
  }

  const float* correlations(std::size_t v) const { return &correlations_[v * frame_.columns]; }

  // Whether the error of the codewords found, those of y, is beyond what rounding to integers may have done.
  bool exact_enough(std::size_t row, const float* y) const {
    float square = 0;
    for (std::size_t i = 0; i < frame_.d; ++i) square += y[i] * y[i];
    return square - 2 * job_.dot[row] + job_.squared_norm[row] >= frame_.least_error;
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

  template <class T>
  void write(std::size_t row, const Chosen<T>& chosen, const float* correlations) {
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
      for (std::size_t j = 0; j < frame_.books; ++j) {
        const float* codeword = &frame_.rows[chosen[j] * frame_.stride + k];
        for (std::size_t p = 0; p < packs; ++p) rebuilt[p] = rebuilt[p] + P::load(codeword + p * P::lanes);
      }
      for (const P part : rebuilt) square = fma(part, part, square);
    }
    job_.dot[row] = dot;
    job_.squared_norm[row] = sum(square);
  }

  const CodebookJob& job_;
  const CodebookFrame& frame_;
  Aligned<float> y_, correlations_;         // of a task's vectors
  std::vector<std::size_t> small_, large_;  // vectors that are searched in integers, and in float
  CodewordMoves<std::int16_t> integers_[2];
  CodewordMoves<float> floats_[2];
};

inline void find_codewords(const CodebookJob& job) {
  run_tasks((job.n + CodewordSearch::group - 1) / CodewordSearch::group, job.threads,
            [&] { return [search = CodewordSearch(job)](std::size_t task) mutable { search.run(task); }; });
}

}  // namespace antisparse::ANTISPARSE_ISA
