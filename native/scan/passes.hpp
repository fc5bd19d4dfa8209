// Passes over the codes: chunks of blocks that stay in cache while several queries read them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "scan/query.hpp"

namespace antisparse::ANTISPARSE_ISA {

using ScanQueries = std::vector<std::unique_ptr<ScanQuery>>;

template <int count>
void prune_group(const ScanJob& job, ScanQuery* const* queries, std::size_t first, std::size_t blocks,
                 std::vector<std::uint32_t>& masks) {
  tick(8 * count * blocks * job.codes.bytes);
  Quantised tables[count];
  Limit limits[count];
  std::uint32_t* out[count];
  for (int q = 0; q < count; ++q) {
    tables[q] = queries[q]->tables();
    limits[q] = queries[q]->limit;
    out[q] = masks.data() + q * blocks;
  }
  if (queries[0]->wide())
    prune_wide<count>(job, first, blocks, tables, limits, out);
  else
    prune_narrow<count>(job, first, blocks, tables, limits, out);
  for (int q = 0; q < count; ++q) queries[q]->collect(first, blocks, out[q]);
}

// The blocks [at, at + blocks) for the queries that are ready.
inline void prune_all(const ScanJob& job, const std::vector<ScanQuery*>& ready, std::vector<ScanQuery*>& order,
                      std::size_t at, std::size_t blocks, std::vector<std::uint32_t>& masks) {
  for (ScanQuery* query : ready)
    if (query->whole()) {
      query->collect_whole(at, blocks);
    } else if (query->open()) {
      query->gather(query->cell(), at, blocks);
      query->collect_gathered();
    }
  for (const bool wide : {false, true}) {
    order.clear();
    for (ScanQuery* query : ready)
      if (!query->whole() && !query->open() && query->wide() == wide) order.push_back(query);
    std::size_t i = 0;
    for (; i + 4 <= order.size(); i += 4) prune_group<4>(job, &order[i], at, blocks, masks);
    for (; i + 2 <= order.size(); i += 2) prune_group<2>(job, &order[i], at, blocks, masks);
    for (; i < order.size(); ++i) prune_group<1>(job, &order[i], at, blocks, masks);
  }
}

// Blocks to find a first limit in, by fine sums.
inline std::size_t first_blocks(const ScanJob& job) { return std::clamp<std::size_t>(job.k / 8, 64, 1024); }

// How many blocks stay in cache while all queries pass them.
inline std::size_t longest_chunk(const ScanJob& job) {
  const std::size_t block_bytes = scan_block * (job.codes.bytes + (job.codes.scales ? 8 : job.codes.column() ? 1 : 0));
  return std::max<std::size_t>(64, (std::size_t{128} << 10) / block_bytes);
}

// Queries over the blocks [first, end). A chunk stays in cache while all of them pass it; the first ones are short,
// since what they find sets the limits for the rest.
inline void pass_blocks(const ScanJob& job, const std::vector<ScanQuery*>& queries, std::size_t first,
                        std::size_t end) {
  const std::size_t longest = longest_chunk(job);
  std::vector<std::uint32_t> masks(4 * std::max(longest, first_blocks(job)));
  std::vector<ScanQuery*> ready, order;
  std::size_t length = first_blocks(job), cell = 0, blocks = 0;
  for (std::size_t at = first; at < end; at += blocks, length = std::min(2 * length, longest)) {
    blocks = std::min(length, end - at);
    while (static_cast<std::size_t>(job.codes.cell_ends[cell]) <= at) ++cell;
    blocks = std::min(blocks, static_cast<std::size_t>(job.codes.cell_ends[cell]) - at);
    ready.clear();
    for (ScanQuery* query : queries)
      if (query->prepare(cell)) ready.push_back(query);
    prune_all(job, ready, order, at, blocks, masks);
  }
}

// All queries over the blocks [first, end), by limits that a sample sets; those whose limit was too low once more,
// without.
inline void scan_blocks(const ScanJob& job, ScanQueries& queries, std::size_t first, std::size_t end) {
  std::vector<ScanQuery*> left;
  for (auto& query : queries) {
    query->guess(first, end);
    left.push_back(query.get());
  }
  pass_blocks(job, left, first, end);
  left.clear();
  for (auto& query : queries)
    if (!query->best.sure()) {
      query->start(query->number());
      left.push_back(query.get());
    }
  if (!left.empty()) pass_blocks(job, left, first, end);
}

// Each query over the cells it probes, cell by cell, so that queries of the same cell pass it together. A chunk is no
// longer than what each of them has seen: what they find there sets the limits for the rest.
inline void scan_cells(const ScanJob& job, ScanQueries& queries, std::size_t first) {
  const std::size_t longest = longest_chunk(job);
  std::vector<std::uint32_t> masks(4 * std::max(longest, first_blocks(job)));
  std::vector<ScanQuery*> ready, order;
  struct Visit {
    std::uint32_t query, probe;
  };
  // Visits by cell: those of cell c stand in [starts[c], starts[c + 1]).
  std::vector<std::size_t> starts(job.codes.cells + 1, 0);
  const std::int64_t* probes = job.queries.probes + first * job.queries.visited;
  const std::size_t count = queries.size() * job.queries.visited;
  for (std::size_t i = 0; i < count; ++i) ++starts[static_cast<std::size_t>(probes[i]) + 1];
  for (std::size_t cell = 0; cell < job.codes.cells; ++cell) starts[cell + 1] += starts[cell];
  std::vector<Visit> visits(count);
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
  for (std::size_t q = 0; q < queries.size(); ++q)
    for (std::size_t p = 0; p < job.queries.visited; ++p)
      visits[next[static_cast<std::size_t>(probes[q * job.queries.visited + p])]++] = {static_cast<std::uint32_t>(q),
                                                                                       static_cast<std::uint32_t>(p)};
  for (std::size_t cell = 0; cell < job.codes.cells; ++cell) {
    if (starts[cell] == starts[cell + 1]) continue;
    const auto end = static_cast<std::size_t>(job.codes.cell_ends[cell]);
    std::size_t blocks = 0;
    for (auto at = static_cast<std::size_t>(cell ? job.codes.cell_ends[cell - 1] : 0); at < end; at += blocks) {
      ready.clear();
      std::size_t seen = longest;
      for (std::size_t i = starts[cell]; i < starts[cell + 1]; ++i) {
        ScanQuery* query = queries[visits[i].query].get();
        if (!query->prepare(visits[i].probe)) continue;
        seen = std::min(seen, query->seen);
        ready.push_back(query);
      }
      blocks = std::min(std::max(seen, first_blocks(job)), end - at);
      for (ScanQuery* query : ready) query->seen += blocks;
      prune_all(job, ready, order, at, blocks, masks);
    }
  }
}

}  // namespace antisparse::ANTISPARSE_ISA
