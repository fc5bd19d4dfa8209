// The nearest of some points to a few vectors. All points are looked at where there are few; of many, ordered so that
// neighbours are near each other, those of the panels whose centres are nearest, which the points `above` tell: so
// nearly all of the nearest are found. What is found depends on the vector and the points alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "machine/threads.hpp"
#include "scan/select.hpp"
#include "tables/point_products.hpp"
#include "tables/rounding.hpp"
#include "tables/table_job.hpp"

namespace antisparse::ANTISPARSE_ISA {

class NearestPoints {
 public:
  static constexpr std::size_t tile = 6;
  static constexpr std::size_t least_panels = 96;  // that are looked at for one point; one more for each further point

  // For at most `held` vectors at a time, a multiple of the tile.
  NearestPoints(const Points& points, std::size_t wanted, std::size_t held)
      : points_(points), d_(points.d), wanted_(wanted), panels_(least_panels + wanted) {
    levels_ = {&points};
    for (std::size_t most = panels_; levels_.back()->above && levels_.back()->above->all > most; most *= 2)
      levels_.push_back(levels_.back()->above.get());
    std::reverse(levels_.begin(), levels_.end());
    const std::size_t top = levels_[0]->half.size();
    held_ = top <= Points::direct ? held : tile;  // many sums at once would not stay in cache
    rounded_ = Aligned<std::int16_t>(held_ * 2 * points.pairs);
    sums_ = Aligned<std::int32_t>(held_ * top);
    values_ = Aligned<float>(top);
  }

  // Of `count` vectors x, a point's stride apart, of given squared lengths.
  void find(const double* x, const double* squares, std::size_t count, std::int64_t* nearest, double* products) {
    for (std::size_t at = 0; at < count; at += held_) {
      const std::size_t to = at * wanted_;
      find_some(x + at * points_.stride, squares + at, std::min(held_, count - at), nearest + to, products + to);
    }
  }

 private:
  struct Near {
    double value;
    std::uint32_t point;
    double product;
    bool operator<(const Near& other) const {
      return value < other.value || (value == other.value && point < other.point);
    }
  };

  // What a product of rounded vectors stands for, and how far a value by it may be from the exact one; `holds` unless
  // they are too short or too long to say anything.
  struct Rounding {
    bool holds;
    float step;
    double moved;
  };

  void find_some(const double* x, const double* squares, std::size_t count, std::int64_t* nearest, double* products) {
    const std::size_t width = 2 * points_.pairs;
    for (std::size_t v = 0; v < count; ++v) {
      const double length = std::sqrt(squares[v]);
      const double scale = length > 1e-30 ? Points::longest / length : 0;
      const double* own = x + v * points_.stride;
      for (std::size_t i = 0; i < d_; ++i)
        rounded_[v * width + i] =
            static_cast<std::int16_t>(static_cast<std::int32_t>((own[i] * scale + to_integer) - to_integer));
    }
    // A panel stays in cache while all rows pass it.
    const Points& top = *levels_[0];
    const std::size_t slots = top.half.size();
    for (std::size_t at = 0; at < top.all; at += Points::width, tick(count * width * Points::width))
      for (std::size_t v = 0; v < count; v += tile)
        multiply_pairs<tile>(&top.panels[at * width], &rounded_[v * width], top.pairs, &sums_[v * slots + at], slots);
    for (std::size_t v = 0; v < count; ++v) {
      const double* own = x + v * points_.stride;
      const double length = std::sqrt(squares[v]);
      value(length, &sums_[v * slots]);
      if (levels_.size() == 1)
        choose(own, length, slots, [](std::size_t slot) { return slot; });
      else
        descend(own, length, &rounded_[v * width]);
      for (std::size_t i = 0; i < wanted_; ++i) {
        nearest[v * wanted_ + i] = order_[i].point;
        products[v * wanted_ + i] = order_[i].product;
      }
    }
  }

  Rounding rounding(const Points& level, double length) const {
    const double product = length * level.longest_point, largest = level.largest_half + product;
    if (!(product > 1e-30 && largest < 1e30)) return {false, 0, 0};
    // Rounding moves a vector by half a unit a number at most, and with it a product by so much; float a little more.
    const double moved = std::sqrt(static_cast<double>(d_)) * product / Points::longest * 1.01 + 1e-6 * largest;
    return {true, static_cast<float>(product / (Points::longest * Points::longest)), moved};
  }

  // The values of all points of the top level.
  void value(double length, const std::int32_t* sums) {
    const Points& top = *levels_[0];
    const std::size_t slots = top.half.size();
    const Rounding by = rounding(top, length);
    if (by.holds)
      for (std::size_t k = 0; k < slots; ++k) values_[k] = top.half[k] - by.step * static_cast<float>(sums[k]);
    else
      std::fill_n(values_.data(), slots, 0.0f);
  }

  // From the values of the top level down: of every level but the last the best points, whose panels are looked at in
  // the next; twice as many a level further up.
  void descend(const double* x, double length, const std::int16_t* rounded) {
    std::size_t slots = levels_[0]->half.size();
    chosen_.clear();
    for (std::size_t l = 1; l < levels_.size(); ++l) {
      const std::size_t panels = panels_ << (levels_.size() - 1 - l);
      const float bound = bound_kth_least(values_.data(), slots, panels, folded_);
      next_.clear();
      for (std::size_t at = 0; at < slots; at += 32)
        for (std::uint32_t mask = at_most(&values_[at], bound); mask; mask &= mask - 1) {
          const std::size_t slot = at + static_cast<std::size_t>(trailing_zeros(mask));
          const std::size_t k = l == 1 ? slot : number(slot);
          if (k < levels_[l - 1]->all) next_.push_back(static_cast<std::uint32_t>(k));
        }
      std::swap(chosen_, next_);
      slots = value_chosen(*levels_[l], length, rounded);
    }
    choose(x, length, slots, [this](std::size_t slot) { return number(slot); });
  }

  // The point of a slot of the chosen panels; beyond all for one of none.
  std::size_t number(std::size_t slot) const {
    const std::size_t panel = slot / Points::width;
    return panel < chosen_.size() ? chosen_[panel] * Points::width + slot % Points::width : points_.all;
  }

  // The values of the points of the chosen panels of a level; returns how many slots they take.
  std::size_t value_chosen(const Points& level, double length, const std::int16_t* rounded) {
    const std::size_t width = 2 * level.pairs, slots = (chosen_.size() * Points::width + 31) / 32 * 32;
    if (values_.size() < slots) values_ = Aligned<float>(slots);
    const Rounding by = rounding(level, length);
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      const std::size_t at = chosen_[i] * Points::width;
      float* const values = &values_[i * Points::width];
      std::int32_t sums[Points::width];
      multiply_pairs<1>(&level.panels[at * width], rounded, level.pairs, sums, 0);
      for (std::size_t j = 0; j < Points::width; ++j)
        values[j] = by.holds ? level.half[at + j] - by.step * static_cast<float>(sums[j]) : 0.0f;
    }
    std::fill(&values_[chosen_.size() * Points::width], values_.data() + slots, std::numeric_limits<float>::infinity());
    tick(chosen_.size() * width * Points::width);
    return slots;
  }

  // The nearest points of a vector of a given length, of those in slots whose values in 16 bits are there: all that may
  // be among them by exact products.
  template <class Number>
  void choose(const double* x, double length, std::size_t slots, const Number& number_of) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const Rounding by = rounding(points_, length);
    const float bound =
        by.holds ? static_cast<float>(bound_kth_least(values_.data(), slots, wanted_, folded_) + 2 * by.moved)
                 : infinity;
    order_.clear();
    for (std::size_t at = 0; at < slots; at += 32)
      for (std::uint32_t mask = at_most(&values_[at], bound); mask; mask &= mask - 1) {
        const std::size_t k = number_of(at + static_cast<std::size_t>(trailing_zeros(mask)));
        if (k >= points_.all) break;
        const double exact = dot(x, &points_.rows[k * points_.stride], points_.stride),
                     value = points_.exact_half[k] - exact;
        // One that is no number counts as last, and never as unordered.
        order_.push_back({value < infinity ? value : infinity, static_cast<std::uint32_t>(k), exact});
      }
    tick(order_.size() * d_);
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(wanted_);
    std::partial_sort(order_.begin(), last, order_.end());
  }

  const Points& points_;
  std::size_t d_, wanted_, panels_, held_ = tile;  // panels that are looked at; vectors at a time
  std::vector<const Points*> levels_;              // the centres of centres first, the points last
  Aligned<std::int16_t> rounded_;
  Aligned<std::int32_t> sums_;
  Aligned<float> values_;
  std::vector<float> folded_;
  std::vector<std::uint32_t> chosen_, next_;  // panels
  std::vector<Near> order_;
};

inline void find_nearest(const NearestJob& job) {
  constexpr std::size_t rows = 48;
  const Points& points = *job.points;
  const std::size_t d = points.d, stride = points.stride;
  run_tasks((job.n + rows - 1) / rows, job.threads, [&] {
    return [&, finder = NearestPoints(points, job.wanted, rows),
            x = Aligned<double>(rows * stride)](std::size_t task) mutable {
      const std::size_t first = task * rows, count = std::min(rows, job.n - first);
      double squares[rows];
      for (std::size_t v = 0; v < count; ++v) {
        double* own = &x[v * stride];
        job.single ? std::copy_n(job.single + (first + v) * d, d, own) : std::copy_n(job.x + (first + v) * d, d, own);
        squares[v] = dot(own, own, stride);
      }
      const std::size_t to = first * job.wanted;
      finder.find(x.data(), squares, count, job.nearest + to, job.products + to);
    };
  });
}

}  // namespace antisparse::ANTISPARSE_ISA
