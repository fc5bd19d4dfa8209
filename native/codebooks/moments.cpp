#include "codebooks/moments.hpp"

#include <vector>

#include "codebooks/codebooks.hpp"
#include "machine/threads.hpp"

namespace antisparse {

void add_moments(const MomentJob& job) {
  const std::size_t books = job.books, columns = codewords * books, row_bytes = (books + 1) / 2;
  std::vector<std::uint16_t> chosen(job.n * books);  // columns; there are at most 2^16
  for (std::size_t v = 0; v < job.n; ++v)
    for (std::size_t j = 0; j < books; ++j) {
      const std::uint8_t byte = job.bits[v * row_bytes + j / 2];
      chosen[v * books + j] = static_cast<std::uint16_t>(codewords * j + (j % 2 ? byte & 15 : byte >> 4));
    }
  // A task is a codebook: its 16 rows of counts and of sums stay in cache while all vectors pass.
  run_tasks(books, job.threads, [&] {
    return [&](std::size_t book) {
      for (std::size_t v = 0; v < job.n; ++v) {
        const std::uint16_t* const row = &chosen[v * books];
        const double* const y = job.y + v * job.d;
        std::uint32_t* const count = job.counts + row[book] * columns;
        double* const sum = job.sums + row[book] * job.d;
        for (std::size_t j = book; j < books; ++j) ++count[row[j]];
        for (std::size_t k = 0; k < job.d; ++k) sum[k] += y[k];
        if (v % 64 == 0) tick(64 * (books + job.d));
      }
    };
  });
}

}  // namespace antisparse
