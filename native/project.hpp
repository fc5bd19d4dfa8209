// Y = X M, each entry summed in the same order whatever rows stand beside it, so that a vector's projection does not
// depend on its batch. (A BLAS chooses its order by the shape of the whole product.)
#pragma once

#include <cstddef>

namespace antisparse {

template <class T>
struct ProjectJob {
  const T* x = nullptr;  // n x d
  const T* m = nullptr;  // d x columns
  T* out = nullptr;      // n x columns
  std::size_t n = 0, d = 0, columns = 0;
  unsigned threads = 1;
};

template <class T>
using Project = void (*)(const ProjectJob<T>&);

}  // namespace antisparse
