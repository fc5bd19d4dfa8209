// The projection: panels of columns, tiles of rows, threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "machine/threads.hpp"
#include "projection/project.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Writes x as T; returns what its products are to be multiplied by.
inline double load_row(const double* x, std::size_t d, double* out) {
  std::copy_n(x, d, out);
  return 1;
}

inline double load_row(const double* x, std::size_t d, float* out) {
  double largest = 0;
  for (std::size_t i = 0; i < d; ++i) largest = std::max(largest, std::abs(x[i]));
  int exponent = 0;
  std::frexp(largest, &exponent);
  const double factor = std::ldexp(1, std::clamp(-exponent, -1000, 1000));
  for (std::size_t i = 0; i < d; ++i) out[i] = static_cast<float>(x[i] * factor);
  return 1 / factor;
}

template <class T>
inline void project(const ProjectJob<T>& job) {
  // A panel stays in cache while all rows of a task pass it: a large matrix is read once a task.
  constexpr std::size_t panel = Panels<T>::width, tile = panel_tile, chunk = 48;
  static_assert(chunk % tile == 0);
  const Panels<T>& m = *job.m;
  const std::size_t d = m.d;
  run_tasks((job.n + chunk - 1) / chunk, job.threads, [&] {
    return [&, rows = Aligned<T>(chunk * d), out = Aligned<T>(tile * panel)](std::size_t task) mutable {
      const std::size_t first = task * chunk, count = std::min(chunk, job.n - first);
      double factors[chunk], least[chunk];
      for (std::size_t v = 0; v < count; ++v) factors[v] = load_row(job.x + (first + v) * d, d, &rows[v * d]);
      std::fill_n(least, chunk, std::numeric_limits<double>::infinity());
      if (job.nearest) std::fill_n(job.nearest + first, count, std::int64_t{0});
      for (std::size_t p = 0; p < m.count; ++p, tick(count * panel * d)) {
        const std::size_t width = std::min(panel, m.columns - p * panel);
        for (std::size_t at = 0; at < count; at += tile) {
          combine_panel<T, tile>(out.data(), panel, m.panel(p), &rows[at * d], d, d);
          for (std::size_t v = 0; v < std::min(tile, count - at); ++v) {
            const std::size_t row = first + at + v;
            double values[panel];
            for (std::size_t j = 0; j < width; ++j) values[j] = factors[at + v] * out[v * panel + j];
            if (job.out) std::copy_n(values, width, job.out + row * m.columns + p * panel);
            for (std::size_t j = 0; job.nearest && j < width; ++j) {
              const double value = job.half[p * panel + j] - values[j];
              if (!(value < least[at + v])) continue;
              least[at + v] = value;
              job.nearest[row] = static_cast<std::int64_t>(p * panel + j);
            }
          }
        }
      }
    };
  });
}

}  // namespace antisparse::ANTISPARSE_ISA
