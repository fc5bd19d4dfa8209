#define ANTISPARSE_ISA portable
#include "batch.hpp"
#include "form_batch.hpp"
#include "kernels.hpp"
#include "project_batch.hpp"
#include "refine_batch.hpp"
#include "scan_batch.hpp"
#include "words_batch.hpp"

const antisparse::Kernels antisparse::portable_kernels = {
    "portable",          portable::solve_batch<float>, portable::solve_batch<double>, portable::scan,
    portable::project,   portable::make_forms,         portable::round_rows,          portable::refine,
    portable::find_words};
