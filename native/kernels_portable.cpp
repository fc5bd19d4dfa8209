#define ANTISPARSE_ISA portable
#include "batch.hpp"
#include "kernels.hpp"

const antisparse::Kernels antisparse::portable_kernels = {"portable", portable::solve_batch<float>,
                                                          portable::solve_batch<double>};
