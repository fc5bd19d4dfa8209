// The projection: panels of columns, tiles of rows, threads.
#pragma once

#include <algorithm>
#include <limits>

#include "machine/aligned.hpp"
#include "machine/linear.hpp"
#include "machine/threads.hpp"
#include "projection/project.hpp"

namespace antisparse::ANTISPARSE_ISA {

inline void project(const ProjectJob& job) {
  using T = double;
  // A panel stays in cache while all rows of a task pass it: a large matrix is read once a task.
  constexpr std::size_t panel = Panels::width, tile = 6, chunk = 8 * tile;
  const Panels packed(job.m, job.d, job.columns);
  run_tasks((job.n + chunk - 1) / chunk, job.threads, [&] {
    return [&, rows = Aligned<T>(chunk * job.d), out = Aligned<T>(tile * panel)](std::size_t task) mutable {
      const std::size_t first = task * chunk, count = std::min(chunk, job.n - first);
      std::copy_n(job.x + first * job.d, count * job.d, rows.data());
      T least[chunk];
      std::fill_n(least, chunk, std::numeric_limits<T>::infinity());
      if (job.nearest) std::fill_n(job.nearest + first, count, std::int64_t{0});
      for (std::size_t p = 0; p < packed.count; ++p, tick(count * panel * job.d)) {
        const std::size_t width = std::min(panel, job.columns - p * panel);
        for (std::size_t at = 0; at < count; at += tile) {
          combine_panel<T, tile>(out.data(), panel, packed.panel(p), &rows[at * job.d], job.d, job.d);
          for (std::size_t v = 0; v < std::min(tile, count - at); ++v) {
            const std::size_t row = first + at + v;
            if (job.out) std::copy_n(&out[v * panel], width, job.out + row * job.columns + p * panel);
            for (std::size_t j = 0; job.nearest && j < width; ++j) {
              const T value = job.half[p * panel + j] - out[v * panel + j];
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
