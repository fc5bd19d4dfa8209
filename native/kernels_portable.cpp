#define ANTISPARSE_ISA portable
#include "codebooks/codebook_batch.hpp"
#include "kernels.hpp"
#include "projection/project_batch.hpp"
#include "refine/refine_batch.hpp"
#include "scan/run.hpp"
#include "solver/spread_batch.hpp"
#include "tables/table_batch.hpp"

const antisparse::Kernels antisparse::portable_kernels = {"portable",
                                                          portable::solve_batch<float>,
                                                          portable::solve_batch<double>,
                                                          portable::scan,
                                                          portable::project<double>,
                                                          portable::project<float>,
                                                          portable::make_tables,
                                                          portable::make_sign_tables,
                                                          portable::round_rows,
                                                          portable::find_nearest,
                                                          portable::refine,
                                                          portable::find_codewords};
