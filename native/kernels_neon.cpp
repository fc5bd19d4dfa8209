// NEON, which every 64-bit ARM CPU has.
#define ANTISPARSE_ISA neon
#define ANTISPARSE_TARGET_NEON 1
#include "codebooks/codebook_batch.hpp"
#include "kernels.hpp"
#include "projection/project_batch.hpp"
#include "refine/refine_batch.hpp"
#include "scan/run.hpp"
#include "solver/spread_batch.hpp"
#include "tables/table_batch.hpp"

const antisparse::Kernels antisparse::neon_kernels = {"neon",
                                                      neon::solve_batch<float>,
                                                      neon::solve_batch<double>,
                                                      neon::scan,
                                                      neon::project<double>,
                                                      neon::project<float>,
                                                      neon::make_tables,
                                                      neon::make_sign_tables,
                                                      neon::round_rows,
                                                      neon::find_nearest,
                                                      neon::refine,
                                                      neon::find_codewords};
