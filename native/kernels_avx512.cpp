// Compiled with AVX-512 (F, BW, VL, VBMI, VNNI) enabled, and linked last: see CMakeLists.txt. What is in integers, or
// in floats whose lanes never meet: all else adds in as many lanes as AVX2 has, in one order for all instruction sets.
#define ANTISPARSE_ISA avx512
#define ANTISPARSE_TARGET_AVX2 1
#define ANTISPARSE_TARGET_AVX512 1
#include "codebooks/codebook_batch.hpp"
#include "kernels.hpp"
#include "projection/project_batch.hpp"
#include "scan/run.hpp"

const antisparse::WideKernels antisparse::avx512_kernels = {avx512::scan, avx512::project<double>,
                                                            avx512::project<float>, avx512::find_codewords};
