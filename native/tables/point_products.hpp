// Products of vectors rounded to 16 bits. Each instruction set has a file of its own, with the same function:
//
//   multiply_pairs<tile>   the products of 16 points, by pairs of their numbers, with `tile` vectors
#pragma once

#ifndef ANTISPARSE_ISA
#error "define ANTISPARSE_ISA (the namespace of the instruction set) before including tables/point_products.hpp"
#endif

#ifdef ANTISPARSE_TARGET_AVX2
#include "tables/point_products_avx2.hpp"
#elif defined(ANTISPARSE_TARGET_NEON)
#include "tables/point_products_neon.hpp"
#else
#include "tables/point_products_portable.hpp"
#endif
