// Compiled with AVX-512 (F, BW, VL, VBMI, VNNI) enabled, and linked last: see CMakeLists.txt. The scan alone: the other
// kernels add floats in as many lanes as AVX2 has, in one order for all instruction sets.
#define ANTISPARSE_ISA avx512
#define ANTISPARSE_TARGET_AVX2 1
#define ANTISPARSE_TARGET_AVX512 1
#include "kernels.hpp"
#include "scan/run.hpp"

const antisparse::Scan antisparse::avx512_scan = avx512::scan;
