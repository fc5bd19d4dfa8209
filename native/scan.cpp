#include "scan.hpp"

#include <limits>

#define ANTISPARSE_ISA portable
#include "query.hpp"

namespace antisparse {
using namespace portable;

void score_codes(const ScoreJob& job) {
  const ScanJob& base = *job.base;
  ExactTables tables(base);
  for (std::size_t q = 0; q < base.queries; ++q) {
    tables.fill(base, q);
    for (std::size_t i = q * job.count; i < (q + 1) * job.count; ++i) {
      const auto at = static_cast<std::size_t>(job.ids[i]);
      job.scores[i] = job.ids[i] < 0 ? std::numeric_limits<double>::infinity()
                                     : exact_score(base, tables, base.unit[q], 0, at, tables.disagreement(base, at));
    }
  }
}

}  // namespace antisparse
