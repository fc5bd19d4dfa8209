#include "refine/refine.hpp"

#include "bind/arrays.hpp"
#include "kernels.hpp"

namespace antisparse::bind {

namespace {

// Improve code rows in place.
Pair refine(Matrix<float> correlations, Matrix<float> gram, Vector<std::int64_t> ends, std::size_t sweeps,
            std::size_t flips, std::size_t tenure, bool cosine, Output<std::uint8_t, 2> bits, unsigned threads,
            std::optional<Output<float, 1>> scales, std::size_t turns, float least_scale) {
  RefineJob job;
  job.n = correlations.shape(0);
  job.m = correlations.shape(1);
  job.blocks = ends.shape(0);
  if (job.m == 0 || gram.shape(0) != job.m || gram.shape(1) != job.m || bits.shape(0) != job.n ||
      bits.shape(1) != (job.m + 7) / 8)
    throw std::invalid_argument("the arrays do not fit");
  const std::int64_t* bounds = data_of(ends);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < job.blocks; ++i) {
    if (bounds[i] <= last) throw std::invalid_argument("blocks must not be empty");
    last = bounds[i];
  }
  if (last != static_cast<std::int64_t>(job.m)) throw std::invalid_argument("the blocks do not fit");
  if (flips >= (1 << 24) || tenure >= (1 << 23)) throw std::invalid_argument("too many flips");
  job.correlations = data_of(correlations);
  job.gram = data_of(gram);
  job.ends = bounds;
  job.sweeps = sweeps;
  job.flips = flips;
  job.tenure = tenure;
  job.objective = cosine ? Objective::cosine : Objective::euclidean;
  job.bits = bits.data();
  job.threads = threads;
  if (scales) {
    if (scales->shape(0) != job.n) throw std::invalid_argument("the scales do not fit");
    job.scales = data_of(*scales);
    job.least_scale = least_scale;
    job.turns = turns;
  } else if (turns > 0) {
    throw std::invalid_argument("turns need scales");
  }
  auto dot = array<float>(job.n), squared_norm = array<float>(job.n);
  job.dot = dot.get();
  job.squared_norm = squared_norm.get();
  {
    nb::gil_scoped_release release;
    kernels().refine(job);
  }
  return nb::make_tuple(owned(std::move(dot), {job.n}), owned(std::move(squared_norm), {job.n}));
}

}  // namespace

void bind_refine(nb::module_& m) {
  m.def("refine", &refine, "correlations"_a.noconvert(), "gram"_a.noconvert(), "ends"_a.noconvert(), "sweeps"_a,
        "flips"_a, "tenure"_a, "cosine"_a, "bits"_a.noconvert(), "threads"_a,
        "scales"_a.noconvert().none() = nb::none(), "turns"_a = 0, "least_scale"_a = 0,
        "Improve code rows in place, scales too; returns c.b and b.G b of every row.");
}

}  // namespace antisparse::bind
