#include "solver/spread.hpp"

#include <type_traits>
#include <vector>

#include "bind/arrays.hpp"
#include "kernels.hpp"
#include "solver/orthonormal.hpp"

namespace antisparse::bind {

namespace {

// A frame of full rank, prepared for the solver in both types.
class SpreadFrame {
 public:
  SpreadFrame(const std::vector<Matrix<double>>& blocks, const std::optional<Matrix<double>>& rotation, int exponent)
      : exponent_(exponent) {
    if (blocks.empty()) throw std::invalid_argument("a frame needs at least one block");
    for (const auto& block : blocks)
      if (block.shape(0) == 0 || block.shape(1) == 0) throw std::invalid_argument("a block is empty");
    nb::gil_scoped_release release;
    for (const auto& block : blocks) {
      float_.add_block(data_of(block), block.shape(0), block.shape(1));
      double_.add_block(data_of(block), block.shape(0), block.shape(1));
    }
    if (!rotation) return;
    if (rotation->shape(0) != double_.d || rotation->shape(1) != double_.d)
      throw std::invalid_argument("the rotation does not fit the blocks");
    float_.set_rotation(data_of(*rotation));
    double_.set_rotation(data_of(*rotation));
  }

  template <class T>
  nb::typed<nb::tuple, nb::any, nb::ellipsis> solve(Matrix<T> vectors, double h, bool relative, std::size_t max_steps,
                                                    unsigned threads, bool want_bits) const {
    if (vectors.shape(1) != double_.d) throw std::invalid_argument("the vectors do not fit the frame");
    const std::size_t n = vectors.shape(0), m = double_.m, row_bytes = (m + 7) / 8;
    auto x = array<T>(want_bits ? 0 : n * m);
    auto bits = array<std::uint8_t>(want_bits ? n * row_bytes : 0);
    auto t = array<T>(n);
    auto h_reached = array<double>(n), certificate = array<double>(n);
    auto steps = array<std::int32_t>(n);

    SpreadJob<T> job;
    if constexpr (std::is_same_v<T, float>)
      job.frame = &float_;
    else
      job.frame = &double_;
    job.double_frame = &double_;
    job.frame_exponent = exponent_;
    job.vectors = data_of(vectors);
    job.n = n;
    job.h = h;
    job.relative = relative;
    job.max_steps = max_steps;
    job.threads = threads;
    job.x = want_bits ? nullptr : x.get();
    job.bits = want_bits ? bits.get() : nullptr;
    job.t = t.get();
    job.h_reached = h_reached.get();
    job.steps = steps.get();
    job.certificate = certificate.get();
    SpreadFailure failure;
    {
      nb::gil_scoped_release release;
      if constexpr (std::is_same_v<T, float>)
        failure = kernels().spread_float(job);
      else
        failure = kernels().spread_double(job);
    }
    nb::object out =
        want_bits ? nb::cast(owned(std::move(bits), {n, row_bytes})) : nb::cast(owned(std::move(x), {n, m}));
    return nb::make_tuple(static_cast<int>(failure.status), failure.row, failure.certificate, out,
                          owned(std::move(t), {n}), owned(std::move(h_reached), {n}), owned(std::move(steps), {n}),
                          owned(std::move(certificate), {n}));
  }

 private:
  Frame<float> float_;
  Frame<double> double_;
  int exponent_;
};

}  // namespace

void bind_spread(nb::module_& m) {
  m.def(
      "orthonormal_rows",
      [](Output<double, 2> rows) {
        require(rows.shape(0) <= rows.shape(1), "more rows than columns");
        nb::gil_scoped_release release;
        return orthonormal_rows(data_of(rows), rows.shape(0), rows.shape(1));
      },
      "rows"_a.noconvert(), "Orthonormalise the rows in place; False where they are dependent.");
  nb::class_<SpreadFrame>(m, "SpreadFrame", "A frame prepared for the spread solver.")
      .def(nb::init<const std::vector<Matrix<double>>&, const std::optional<Matrix<double>>&, int>(), "blocks"_a,
           "rotation"_a.none(), "exponent"_a)
      .def("solve", &SpreadFrame::solve<float>, "vectors"_a.noconvert(), "h"_a, "relative"_a, "max_steps"_a,
           "threads"_a, "want_bits"_a)
      .def("solve", &SpreadFrame::solve<double>, "vectors"_a.noconvert(), "h"_a, "relative"_a, "max_steps"_a,
           "threads"_a, "want_bits"_a);
}

}  // namespace antisparse::bind
