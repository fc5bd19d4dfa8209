// Many vectors: groups for the annealing, then flips one vector at a time, on threads.
#pragma once

#include "anneal.hpp"
#include "flips.hpp"
#include "threads.hpp"

namespace antisparse::ANTISPARSE_ISA {

inline void refine(const RefineJob& job) {
  const RefineFrame frame(job);
  const std::size_t bytes = (job.m + 7) / 8, group = Anneal::width;
  run_tasks((job.n + group - 1) / group, job.threads, [&] {
    return [&, anneal = Anneal(frame), flips = Flips(frame)](std::size_t task) mutable {
      const std::size_t first = task * group, count = std::min(group, job.n - first);
      if (job.sweeps > 0) anneal.run(job.correlations + first * job.m, count, job.sweeps);
      for (std::size_t v = 0; v < count; ++v) {
        std::uint8_t* bits = job.bits + (first + v) * bytes;
        for (std::size_t j = 0; j < job.m; ++j)
          flips.b[j] = job.sweeps > 0 ? anneal.sign(v, j) : bits[j / 8] >> (7 - j % 8) & 1 ? 1.0f : -1.0f;
        if (job.flips > 0) flips.run(job.correlations + (first + v) * job.m, job.flips, job.tenure, job.objective);
        std::memset(bits, 0, bytes);
        for (std::size_t j = 0; j < job.m; ++j)
          if (flips.b[j] > 0) bits[j / 8] |= static_cast<std::uint8_t>(128 >> j % 8);
      }
    };
  });
}

}  // namespace antisparse::ANTISPARSE_ISA
