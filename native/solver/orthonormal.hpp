// Orthonormal rows by Gram-Schmidt, the same bits on every machine.
#pragma once

#include <cstddef>

namespace antisparse {

// Replaces the d rows (m long, C order, d <= m) by an orthonormal basis of their span, in order. Returns false where
// they are dependent.
bool orthonormal_rows(double* rows, std::size_t d, std::size_t m);

}  // namespace antisparse
