#include "bind/arrays.hpp"
#include "kernels.hpp"
#include "projection/project.hpp"

namespace antisparse::bind {

namespace {

nb::ndarray<nb::numpy, double> project(Matrix<double> x, Matrix<double> m, unsigned threads) {
  if (x.shape(1) != m.shape(0)) throw std::invalid_argument("the matrices do not fit");
  auto out = array<double>(x.shape(0) * m.shape(1));
  ProjectJob job;
  job.x = data_of(x);
  job.m = data_of(m);
  job.out = out.get();
  job.n = x.shape(0);
  job.d = x.shape(1);
  job.columns = m.shape(1);
  job.threads = threads;
  {
    nb::gil_scoped_release release;
    kernels().project(job);
  }
  return owned(std::move(out), {job.n, job.columns});
}

// The column k of m of least half[k] - x.m_k, for every row x.
nb::ndarray<nb::numpy, std::int64_t> nearest(Matrix<double> x, Matrix<double> m, Vector<double> half,
                                             unsigned threads) {
  if (x.shape(1) != m.shape(0) || half.shape(0) != m.shape(1) || m.shape(1) == 0)
    throw std::invalid_argument("the matrices do not fit");
  auto labels = array<std::int64_t>(x.shape(0));
  ProjectJob job;
  job.x = data_of(x);
  job.m = data_of(m);
  job.half = data_of(half);
  job.nearest = labels.get();
  job.n = x.shape(0);
  job.d = x.shape(1);
  job.columns = m.shape(1);
  job.threads = threads;
  {
    nb::gil_scoped_release release;
    kernels().project(job);
  }
  return owned(std::move(labels), {job.n});
}

}  // namespace

void bind_projection(nb::module_& m) {
  m.def("project", &project, "x"_a.noconvert(), "m"_a.noconvert(), "threads"_a, "x @ m, row by row alike.");
  m.def("nearest", &nearest, "x"_a.noconvert(), "m"_a.noconvert(), "half"_a.noconvert(), "threads"_a,
        "The first column k of m of least half[k] - x @ m[:, k], for every row.");
}

}  // namespace antisparse::bind
