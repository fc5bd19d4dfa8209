// The scan: groups of queries, threads.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "machine/threads.hpp"
#include "scan/passes.hpp"
#include "scan/probing.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Whether the two tables of a byte add up to a multiple of it, which is not negative.
inline bool linear(const std::int32_t* byte) {
  const std::int32_t factor = byte[17];
  if (factor < 0 || factor >= 1 << 23) return false;
  bool alike = true;
  for (std::int32_t v = 0; v < 16; ++v) alike &= (byte[v] == 16 * v * factor) & (byte[16 + v] == v * factor);
  return alike;
}

// How many of the last bytes of a code have tables that are linear in the byte, for every query: c v for the low nibble
// and 16 c v for the high one, c >= 0. A few are enough: a byte is linear that holds a number.
inline std::size_t linear_bytes(const Codes& codes, const Queries& queries) {
  constexpr std::size_t most = 4;
  if (queries.cell_steps) return 0;
  std::size_t found = std::min(codes.bytes, most);
  for (std::size_t q = 0; q < queries.count && found > 0; ++q) {
    const std::int32_t* end = queries.table(q) + 32 * codes.bytes;
    if (q + 8 < queries.count) {
      const std::int32_t* soon = queries.table(q + 8) + 32 * (codes.bytes - 1);
      ask_for(soon);
      ask_for(soon + 16);
    }
    for (std::size_t j = 0; j < found; ++j)
      if (!linear(end - 32 * (j + 1))) found = j;
  }
  return found;
}

inline void scan(const ScanJob& asked) {
  ScanJob job = asked;
  job.linear = linear_bytes(job.codes, job.queries);
  // A base beyond caches is worth reading once for many queries; where it is not, each query has its nearest cells
  // first, and with them a low limit for the others.
  constexpr std::size_t cached = std::size_t{16} << 20;
  const bool together =
      job.codes.places * job.codes.bytes > cached && job.queries.count * job.queries.visited >= 4 * job.codes.cells;
  if (job.queries.probes && !together) return scan_apart(job);
  // Threads share the queries where there are enough of them, in groups that pass over the base together; else the
  // base, in ranges, each of which starts without a limit.
  constexpr std::size_t most = 64, least = 4, shortest = 512;  // queries a group, blocks a range
  const std::size_t blocks = job.codes.block_count, count = job.queries.count;
  const std::size_t share = (count + job.threads - 1) / job.threads;
  const std::size_t fewest = std::max(least, (share + least - 1) / least * least);
  // Candidates of a group stay in cache, too, where the base does.
  const std::size_t kept =
      job.codes.places * job.codes.bytes > cached ? most : (std::size_t{1} << 15) / std::max<std::size_t>(job.k, 1);
  const std::size_t group =
      std::min(job.queries.probes ? 16 * most : std::clamp(kept / least * least, least, most), fewest);
  const std::size_t groups = (count + group - 1) / group;
  std::size_t ranges = 1;
  if (groups < job.threads && groups > 0 && !job.queries.probes)
    ranges = std::max<std::size_t>(1, std::min<std::size_t>((job.threads + groups - 1) / groups, blocks / shortest));
  std::deque<Scratch> scratches;  // one a thread, which what is merged after the tasks uses, too
  std::mutex adding;
  std::vector<ScanQueries> found(groups * ranges);
  run_tasks(groups * ranges, job.threads, [&] {
    const std::lock_guard<std::mutex> lock(adding);
    return [&, &scratch = scratches.emplace_back(), kept = ScanQueries()](std::size_t task) mutable {
      const std::size_t g = task / ranges, range = task % ranges, first = g * group;
      ScanQueries& queries = ranges > 1 ? found[task] : kept;
      const std::size_t size = std::min(group, count - first);
      queries.resize(std::min(queries.size(), size));
      while (queries.size() < size) queries.push_back(std::make_unique<ScanQuery>(job, scratch));
      for (std::size_t q = 0; q < size; ++q) queries[q]->start(first + q);
      if (job.queries.probes)
        scan_cells(job, queries, first);
      else
        scan_blocks(job, queries, blocks * range / ranges, blocks * (range + 1) / ranges);
      if (ranges > 1) {
        for (auto& query : queries) query->best.cut();
        return;
      }
      for (std::size_t q = 0; q < queries.size(); ++q)
        queries[q]->best.write(job.scores + (first + q) * job.k, job.ids + (first + q) * job.k);
    };
  });
  if (ranges == 1) return;
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t q = 0; q < found[g * ranges].size(); ++q) {
      Best& best = found[g * ranges][q]->best;
      for (std::size_t range = 1; range < ranges; ++range) best.merge(found[g * ranges + range][q]->best);
      best.write(job.scores + (g * group + q) * job.k, job.ids + (g * group + q) * job.k);
    }
}

}  // namespace antisparse::ANTISPARSE_ISA
