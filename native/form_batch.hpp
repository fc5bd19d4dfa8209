// Forms: tiles of queries, threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#ifdef ANTISPARSE_TARGET_AVX2
#include <immintrin.h>
#endif

#include "aligned.hpp"
#include "form.hpp"
#include "linear.hpp"
#include "select.hpp"
#include "threads.hpp"

namespace antisparse::ANTISPARSE_ISA {

// 1.5 * 2^52: what is added to it is rounded to an integer, half to even.
constexpr double to_integer = 6755399441055744.0;

// Integers below 2^24 times a power of two, which is returned: sums of integers are exact in any order. `at_least`,
// too, is below 2^23 of that unit. NaN where a value is not finite.
inline double round_row(const double* values, std::size_t count, double at_least, std::int32_t* out) {
  constexpr std::size_t lanes = 8;
  double largest[lanes] = {at_least}, zeros[lanes] = {};  // NaN where there is a value that is not finite
  const auto meet = [&](std::size_t lane, double value) {
    const double size = std::abs(value);
    largest[lane] = size > largest[lane] ? size : largest[lane];
    zeros[lane] += 0 * value;
  };
  std::size_t at = 0;
  for (; at + lanes <= count; at += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) meet(lane, values[at + lane]);
  for (; at < count; ++at) meet(0, values[at]);
  const double most = *std::max_element(largest, largest + lanes);
  if (std::accumulate(zeros, zeros + lanes, 0.0) != 0) return std::numeric_limits<double>::quiet_NaN();
  int exponent = 0;
  std::frexp(most, &exponent);
  exponent = most > 0 ? std::max(exponent - 23, -1022) : 0;
  const double inverse = std::ldexp(1.0, -exponent);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int32_t>((values[i] * inverse + to_integer) - to_integer);
  return std::ldexp(1.0, exponent);
}

inline void round_rows(const double* values, std::size_t n, std::size_t count, double at_least, std::int32_t* rounded,
                       double* units) {
  for (std::size_t i = 0; i < n; ++i) units[i] = round_row(values + i * count, count, at_least, rounded + i * count);
}

// The products of 16 points, by pairs of their numbers, with `tile` vectors.
template <std::size_t tile>
inline void multiply_pairs(const std::int16_t* panel, const std::int16_t* vectors, std::size_t pairs, std::int32_t* out,
                           std::size_t out_stride) {
#ifdef ANTISPARSE_TARGET_AVX2
  __m256i sums[tile][2];
  for (std::size_t v = 0; v < tile; ++v) sums[v][0] = sums[v][1] = _mm256_setzero_si256();
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto* points = reinterpret_cast<const __m256i*>(panel + 2 * Points::width * i);
    const __m256i low = _mm256_load_si256(points), high = _mm256_load_si256(points + 1);
    for (std::size_t v = 0; v < tile; ++v) {
      std::int32_t pair;
      std::memcpy(&pair, vectors + 2 * (v * pairs + i), sizeof pair);
      const __m256i both = _mm256_set1_epi32(pair);
      sums[v][0] = _mm256_add_epi32(sums[v][0], _mm256_madd_epi16(low, both));
      sums[v][1] = _mm256_add_epi32(sums[v][1], _mm256_madd_epi16(high, both));
    }
  }
  for (std::size_t v = 0; v < tile; ++v)
    for (std::size_t h = 0; h < 2; ++h)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + v * out_stride + 8 * h), sums[v][h]);
#else
  for (std::size_t v = 0; v < tile; ++v) {
    std::int32_t sums[Points::width] = {};
    for (std::size_t i = 0; i < pairs; ++i)
      for (std::size_t k = 0; k < Points::width; ++k)
        for (std::size_t j = 0; j < 2; ++j)
          sums[k] += std::int32_t{panel[2 * (Points::width * i + k) + j]} * vectors[2 * (v * pairs + i) + j];
    std::copy_n(sums, Points::width, out + v * out_stride);
  }
#endif
}

// A few queries at a time, so that all they need stays in cache.
class FormMaker {
 public:
  static constexpr std::size_t rows = 48;

  explicit FormMaker(const FormJob& job)
      : job_(job),
        d_(job.frame->d),
        stride_(padded<double>(d_)),
        columns_(job.frame->count * Panels::width),
        points_(job.points ? job.points->half.size() : 0),
        held_(std::min(rows, (job.n + tile_ - 1) / tile_ * tile_)),
        x_(held_ * stride_),
        projected_(held_ * columns_),
        rounded_(job.points ? held_ * 2 * job.points->pairs : 0),
        sums_(held_ * points_),
        values_(points_) {}

  // The queries from `first` on.
  void make(std::size_t first) {
    const std::size_t count = std::min(rows, job_.n - first);
    for (std::size_t v = 0; v < count; ++v) {
      double* x = &x_[v * stride_];
      const std::size_t from = (first + v) * d_;
      job_.single ? std::copy_n(job_.single + from, d_, x) : std::copy_n(job_.x + from, d_, x);
      for (std::size_t i = 0; job_.shift && i < d_; ++i) x[i] -= job_.shift[i];
      job_.squares[first + v] = dot(x, x, stride_);
    }
    for (std::size_t p = 0; p < job_.frame->count; ++p)
      for (std::size_t v = 0; v < count; v += tile_)
        combine_panel<double, tile_>(&projected_[v * columns_ + p * Panels::width], columns_, job_.frame->panel(p),
                                     &x_[v * stride_], stride_, d_);
    for (std::size_t v = 0; v < count; ++v) {
      std::int32_t* weights = job_.weights + (first + v) * job_.columns;
      double unit = round_row(&projected_[v * columns_], job_.columns, job_.at_least, weights);
      std::int64_t total = 0;
      if (!(unit == unit)) std::fill_n(weights, job_.columns, 0);
      if (job_.words) {
        for (std::size_t j = 0; j < job_.columns; j += 16)
          total += 2 * *std::max_element(weights + j, weights + j + 16);
        unit /= 2;
      } else {
        for (std::size_t j = 0; j < job_.columns; ++j) total += std::abs(weights[j]);
      }
      job_.units[first + v] = unit;
      job_.totals[first + v] = static_cast<double>(total) * unit;
    }
    if (job_.probes) find(first, count);
  }

 private:
  static constexpr std::size_t tile_ = 6;

  struct Near {
    double value;
    std::uint32_t point;
    double product;
    bool operator<(const Near& other) const {
      return value < other.value || (value == other.value && point < other.point);
    }
  };

  // The nearest points.
  void find(std::size_t first, std::size_t count) {
    const Points& points = *job_.points;
    const std::size_t width = 2 * points.pairs;
    for (std::size_t v = 0; v < count; ++v) {
      const double size = std::sqrt(job_.squares[first + v]);
      const double scale = size > 1e-30 ? Points::longest / size : 0;
      const double* x = &x_[v * stride_];
      for (std::size_t i = 0; i < d_; ++i)
        rounded_[v * width + i] =
            static_cast<std::int16_t>(static_cast<std::int32_t>((x[i] * scale + to_integer) - to_integer));
    }
    for (std::size_t at = 0; at < points.all; at += Points::width)  // a panel stays in cache while all rows pass it
      for (std::size_t v = 0; v < count; v += tile_)
        multiply_pairs<tile_>(&points.panels[at * width], &rounded_[v * width], points.pairs, &sums_[v * points_ + at],
                              points_);
    for (std::size_t v = 0; v < count; ++v) {
      choose(&x_[v * stride_], std::sqrt(job_.squares[first + v]), &sums_[v * points_]);
      for (std::size_t i = 0, to = (first + v) * job_.probes; i < job_.probes; ++i, ++to) {
        job_.nearest[to] = order_[i].point;
        job_.products[to] = order_[i].product;
      }
    }
  }

  // The nearest points of a query of a given length, whose products in 16 bits are `sums`: all that may be among them
  // by exact products.
  void choose(const double* x, double size, const std::int32_t* sums) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const Points& points = *job_.points;
    const double product = size * points.size, largest = points.largest_half + product;
    float bound = infinity;
    if (product > 1e-30 && largest < 1e30) {
      const auto step = static_cast<float>(product / (Points::longest * Points::longest));
      for (std::size_t k = 0; k < points_; ++k) values_[k] = points.half[k] - step * static_cast<float>(sums[k]);
      // Rounding moves a vector by half a unit a number at most, and with it a product by so much; float a little more.
      const double moved = std::sqrt(static_cast<double>(d_)) * product / Points::longest * 1.01 + 1e-6 * largest;
      bound = static_cast<float>(bound_kth_least(values_.data(), points_, job_.probes, folded_) + 2 * moved);
    } else {
      std::fill_n(values_.data(), points_, 0.0f);
    }
    order_.clear();
    for (std::size_t at = 0; at < points_; at += 32)
      for (std::uint32_t mask = at_most(&values_[at], bound); mask; mask &= mask - 1) {
        const std::size_t k = at + static_cast<std::size_t>(trailing_zeros(mask));
        if (k >= points.all) break;
        const double exact = dot(x, &points.rows[k * points.stride], points.stride),
                     value = points.exact_half[k] - exact;
        // One that is no number counts as last, and never as unordered.
        order_.push_back({value < infinity ? value : infinity, static_cast<std::uint32_t>(k), exact});
      }
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(job_.probes);
    std::partial_sort(order_.begin(), last, order_.end());
  }

  const FormJob& job_;
  std::size_t d_, stride_, columns_, points_, held_;  // columns and points padded; queries there is room for
  Aligned<double> x_, projected_;
  Aligned<std::int16_t> rounded_;
  Aligned<std::int32_t> sums_;
  Aligned<float> values_;
  std::vector<float> folded_;
  std::vector<Near> order_;
};

inline void make_forms(const FormJob& job) {
  run_tasks((job.n + FormMaker::rows - 1) / FormMaker::rows, job.threads,
            [&] { return [maker = FormMaker(job)](std::size_t task) mutable { maker.make(task * FormMaker::rows); }; });
}

}  // namespace antisparse::ANTISPARSE_ISA
