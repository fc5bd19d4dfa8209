// The innermost loops of the kernels, each for cycles.py alone: compiled, never run.
#include "codebooks/codebook_batch.hpp"
#include "machine/linear.hpp"
#include "refine/anneal.hpp"
#include "scan/prune.hpp"
#include "tables/point_products.hpp"

namespace antisparse::ANTISPARSE_ISA {

#if defined(LOOP_SCAN_FOUR) || defined(LOOP_SCAN_ONE) || defined(LOOP_SCAN_WIDE)
template <int queries>
void masks(const ScanJob& job, std::size_t count, const Quantised* tables, const Limit* limits,
           std::uint32_t* const* out) {
#ifdef LOOP_SCAN_WIDE
  prune_wide<queries>(job, 0, count, tables, limits, out);
#else
  narrow_masks<queries, 0>(job, 0, count, tables, limits, out);
#endif
}
#endif

#if defined(LOOP_SCAN_FOUR) || defined(LOOP_SCAN_WIDE)
template void masks<4>(const ScanJob&, std::size_t, const Quantised*, const Limit*, std::uint32_t* const*);
#elif defined(LOOP_SCAN_ONE)
template void masks<1>(const ScanJob&, std::size_t, const Quantised*, const Limit*, std::uint32_t* const*);
#elif defined(LOOP_CELLS)
template void multiply_pairs<6>(const std::int16_t*, const std::int16_t*, std::size_t, std::int32_t*, std::size_t);
#elif defined(LOOP_PROJECTION)
template void combine_panel<float, 6>(float*, std::size_t, const float*, const float*, std::size_t, std::size_t);
#elif defined(LOOP_SOLVER_PRODUCTS)
template void combine_strip<float, 8>(float*, const float*, const float*, std::size_t, const float*, std::size_t);
#elif defined(LOOP_SOLVER_ROTATIONS)
template void rotate_strip<float, 4>(float*, std::size_t, const float*, const float*, std::size_t);
#elif defined(LOOP_ANNEALING)
void anneal(const RefineFrame& frame, const float* correlations, std::size_t sweeps) {
  Anneal(frame).run(correlations, nullptr, Anneal::width, sweeps);
}
#elif defined(LOOP_CODEBOOKS)
template class CodewordMoves<std::int16_t>;
#endif

}  // namespace antisparse::ANTISPARSE_ISA
