#include "bind/arrays.hpp"
#include "kernels.hpp"
#include "projection/project.hpp"

namespace antisparse::bind {

namespace {

using Rows = nb::ndarray<nb::numpy, double>;

template <class T>
Panels<T> packed(const Matrix<double>& m) {
  const double* data = data_of(m);
  nb::gil_scoped_release release;
  return Panels<T>(data, m.shape(0), m.shape(1));
}

template <class T>
Rows projected(const Matrix<double>& x, const Panels<T>& m, Project<T> kernel, unsigned threads) {
  require(x.shape(1) == m.d, "the matrices do not fit");
  ProjectJob<T> job;
  job.x = data_of(x);
  job.m = &m;
  job.n = x.shape(0);
  job.threads = threads;
  auto out = array<double>(job.n * m.columns);
  job.out = out.get();
  {
    nb::gil_scoped_release release;
    kernel(job);
  }
  return owned(std::move(out), {job.n, m.columns});
}

// A matrix prepared for many products, in float.
class Projection {
 public:
  explicit Projection(Matrix<double> m) : panels_(packed<float>(m)) {}
  Rows project(Matrix<double> x, unsigned threads) const {
    return projected(x, panels_, kernels().project_single, threads);
  }

 private:
  Panels<float> panels_;
};

Rows project(Matrix<double> x, Matrix<double> m, unsigned threads) {
  require(x.shape(1) == m.shape(0), "the matrices do not fit");
  return projected(x, packed<double>(m), kernels().project, threads);
}

// The column k of m of least half[k] - x.m_k, for every row x.
nb::ndarray<nb::numpy, std::int64_t> nearest(Matrix<double> x, Matrix<double> m, Vector<double> half,
                                             unsigned threads) {
  require(x.shape(1) == m.shape(0) && half.shape(0) == m.shape(1) && m.shape(1) > 0, "the matrices do not fit");
  const Panels<double> panels = packed<double>(m);
  auto labels = array<std::int64_t>(x.shape(0));
  ProjectJob<double> job;
  job.x = data_of(x);
  job.m = &panels;
  job.half = data_of(half);
  job.nearest = labels.get();
  job.n = x.shape(0);
  job.threads = threads;
  {
    nb::gil_scoped_release release;
    kernels().project(job);
  }
  return owned(std::move(labels), {job.n});
}

}  // namespace

void bind_projection(nb::module_& m) {
  nb::class_<Projection>(
      m, "Projection",
      "A matrix prepared for many products, in float32: rows of any size are scaled to fit it, and back.")
      .def(nb::init<Matrix<double>>(), "m"_a.noconvert())
      .def("project", &Projection::project, "x"_a.noconvert(), "threads"_a, "x @ m, row by row alike.");
  m.def("project", &project, "x"_a.noconvert(), "m"_a.noconvert(), "threads"_a, "x @ m, row by row alike.");
  m.def("nearest", &nearest, "x"_a.noconvert(), "m"_a.noconvert(), "half"_a.noconvert(), "threads"_a,
        "The first column k of m of least half[k] - x @ m[:, k], for every row.");
}

}  // namespace antisparse::bind
