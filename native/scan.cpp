#include "scan.hpp"

#include <limits>

#include "query.hpp"

namespace antisparse {

void score_codes(const ScoreJob& job) {
  const ScanJob& base = *job.base;
  for (std::size_t q = 0; q < base.queries; ++q) {
    const ExactTables tables(base, q);
    for (std::size_t i = q * job.count; i < (q + 1) * job.count; ++i)
      job.scores[i] = job.ids[i] < 0 ? std::numeric_limits<double>::infinity()
                                     : exact_score(base, tables, base.unit[q], 0, static_cast<std::size_t>(job.ids[i]));
  }
}

}  // namespace antisparse
