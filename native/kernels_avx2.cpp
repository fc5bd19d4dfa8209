// Compiled with AVX2 and FMA enabled, and linked last: see CMakeLists.txt.
#define ANTISPARSE_ISA avx2
#define ANTISPARSE_TARGET_AVX2 1
#include "batch.hpp"
#include "form_batch.hpp"
#include "kernels.hpp"
#include "project_batch.hpp"
#include "refine_batch.hpp"
#include "scan_batch.hpp"
#include "words_batch.hpp"

const antisparse::Kernels antisparse::avx2_kernels = {
    "avx2",          avx2::solve_batch<float>, avx2::solve_batch<double>, avx2::scan,
    avx2::project,   avx2::make_forms,         avx2::round_rows,          avx2::refine,
    avx2::find_words};
