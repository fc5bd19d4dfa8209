// The kernels of each instruction set, and the choice among them.
#pragma once

#include <string>
#include <vector>

#include "codebooks/codebooks.hpp"
#include "projection/project.hpp"
#include "refine/refine.hpp"
#include "scan/scan.hpp"
#include "solver/spread.hpp"
#include "tables/table_job.hpp"

namespace antisparse {

struct Kernels {
  const char* isa;
  SpreadSolve<float> spread_float;
  SpreadSolve<double> spread_double;
  Scan scan;
  Project<double> project;
  Project<float> project_single;
  MakeTables make_tables;
  MakeSignTables make_sign_tables;
  RoundRows round_rows;
  FindNearest find_nearest;
  Refine refine;
  FindCodewords find_codewords;
};

extern const Kernels portable_kernels;
#ifdef ANTISPARSE_BUILD_AVX2
extern const Kernels avx2_kernels;
#endif
#ifdef ANTISPARSE_BUILD_AVX512
// What AVX-512 has of its own; the rest is that of AVX2.
struct WideKernels {
  Scan scan;
  Project<double> project;
  Project<float> project_single;
  FindCodewords find_codewords;
};
extern const WideKernels avx512_kernels;
#endif
#ifdef ANTISPARSE_BUILD_NEON
extern const Kernels neon_kernels;
#endif

// The set in use.
const Kernels& kernels();

// At load: the best set this CPU has, or the one named by the environment variable ANTISPARSE_ISA. Throws where that
// names none this machine has.
void choose_kernels();

// The sets that this CPU runs, best first.
std::vector<std::string> isas();

// Changes the set in use, for tests; returns false where the name is unknown or the CPU lacks it.
bool use_isa(const char* name);

}  // namespace antisparse
