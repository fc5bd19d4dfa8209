#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#define ANTISPARSE_ISA portable
#include "scan/exact.hpp"

namespace antisparse {

void check(const Queries& queries, const Codes& codes) {
  const auto refuse = [](const char* message) { throw std::invalid_argument(message); };
  if (queries.nibbles != codes.nibbles()) refuse("tables: not a table for each nibble of the codes");
  if (queries.visited == 0 || (!queries.probes && queries.visited != codes.cells))
    refuse("offsets: not one for each cell visited");
  if (codes.column() != (queries.base != nullptr)) refuse("base: needed exactly when the codes have a column");
  for (std::size_t i = 0; i < queries.count; ++i) {
    if (!(queries.units[i] > 0) || !std::isfinite(queries.units[i])) refuse("units must be positive and finite");
    if (queries.base && !std::isfinite(queries.base[i])) refuse("base must be finite");
  }
  for (std::size_t i = 0; i < queries.count * queries.visited; ++i) {
    if (!std::isfinite(queries.offsets[i])) refuse("offsets must be finite");
    if (queries.cell_steps && (queries.cell_steps[i] < 0 || queries.cell_steps[i] >= 1 << 23))
      refuse("cell_steps: a step is not in [0, 2^23)");
    if (queries.probes && (queries.probes[i] < 0 || queries.probes[i] >= static_cast<std::int64_t>(codes.cells)))
      refuse("probes: not a cell");
  }
}

void score_codes(const ScoreJob& job) {
  const Queries& queries = job.queries;
  for (std::size_t i = 0; i < queries.count * job.count; ++i)
    if (job.places[i] >= static_cast<std::int64_t>(job.codes.places))
      throw std::invalid_argument("places: out of range");
  const std::int64_t *ends = job.codes.cell_ends, *ends_end = ends + job.codes.cells;
  portable::ExactTables tables(job.codes, queries, 0);
  for (std::size_t q = 0; q < queries.count; ++q) {
    tables.start(q);
    tick(job.count * job.codes.bytes * 4);
    std::size_t visited = 0;
    for (std::size_t i = q * job.count; i < (q + 1) * job.count; ++i) {
      job.scores[i] = std::numeric_limits<double>::infinity();
      if (job.places[i] < 0) continue;
      const std::int64_t block = job.places[i] / static_cast<std::int64_t>(scan_block);
      const auto cell = static_cast<std::size_t>(std::upper_bound(ends, ends_end, block) - ends);
      if (cell != visited) tables.visit(cell);
      visited = cell;
      job.scores[i] = tables.score(static_cast<std::size_t>(job.places[i]), queries.units[q],
                                   queries.offsets[q * queries.visited + cell], queries.base ? queries.base[q] : 0);
    }
  }
}

}  // namespace antisparse
