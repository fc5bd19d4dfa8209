// Compiled with AVX2 and FMA enabled, and linked last: see CMakeLists.txt.
#define ANTISPARSE_ISA avx2
#define ANTISPARSE_TARGET_AVX2 1
#include "codebooks/codebook_batch.hpp"
#include "kernels.hpp"
#include "projection/project_batch.hpp"
#include "refine/refine_batch.hpp"
#include "scan/run.hpp"
#include "solver/spread_batch.hpp"
#include "tables/table_batch.hpp"

const antisparse::Kernels antisparse::avx2_kernels = {"avx2",
                                                      avx2::solve_batch<float>,
                                                      avx2::solve_batch<double>,
                                                      avx2::scan,
                                                      avx2::project<double>,
                                                      avx2::project<float>,
                                                      avx2::make_tables,
                                                      avx2::make_sign_tables,
                                                      avx2::round_rows,
                                                      avx2::find_nearest,
                                                      avx2::refine,
                                                      avx2::find_codewords};
