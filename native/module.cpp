// Bindings only: shapes and types are checked here, meaning in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "orthonormal.hpp"
#include "scan.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace antisparse;

namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// An array of NumPy's that owns its memory.
template <class T>
nb::ndarray<nb::numpy, T> owned(std::unique_ptr<T[]> data, std::initializer_list<std::size_t> shape) {
  T* raw = data.release();
  return nb::ndarray<nb::numpy, T>(raw, shape, nb::capsule(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); }));
}

template <class T>
std::unique_ptr<T[]> array(std::size_t n) {
  return std::unique_ptr<T[]>(new T[n]);
}

// A frame of full rank, prepared for the solver in both types.
class SpreadFrame {
 public:
  SpreadFrame(const std::vector<Matrix<double>>& blocks, std::optional<Matrix<double>> rotation, int exponent)
      : exponent_(exponent) {
    if (blocks.empty()) throw std::invalid_argument("a frame needs at least one block");
    for (const auto& block : blocks)
      if (block.shape(0) == 0 || block.shape(1) == 0) throw std::invalid_argument("a block is empty");
    nb::gil_scoped_release release;
    for (const auto& block : blocks) {
      float_.add_block(block.data(), block.shape(0), block.shape(1));
      double_.add_block(block.data(), block.shape(0), block.shape(1));
    }
    if (!rotation) return;
    if (rotation->shape(0) != double_.d || rotation->shape(1) != double_.d)
      throw std::invalid_argument("the rotation does not fit the blocks");
    float_.set_rotation(rotation->data());
    double_.set_rotation(rotation->data());
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
    job.vectors = vectors.data();
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

// Codes in scan layout with their terms, ready to be searched. Keeps the arrays it was given alive.
class ScanBase {
 public:
  using Codes = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
  using Terms = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

  ScanBase(Codes blocks, std::size_t n, std::size_t bits, std::optional<Terms> scale, std::optional<Terms> bias,
           float bias0, std::size_t side, std::optional<Longs> positions, std::optional<Longs> cell_ends,
           std::optional<Bytes> reach_bytes, std::optional<Bytes> bias_bytes, std::vector<double> ranges, bool nibble,
           bool words)
      : blocks_(blocks),
        scale_(scale),
        bias_(bias),
        positions_(positions),
        cell_ends_(cell_ends),
        reach_bytes_(reach_bytes),
        bias_bytes_(bias_bytes) {
    const std::size_t count = (n + scan_block - 1) / scan_block;
    if (bits == 0 || blocks.shape(0) != count || blocks.shape(1) != (bits + 7) / 8 + side ||
        blocks.shape(2) != scan_block || (side && (scale || reach_bytes)) || (scale && reach_bytes) ||
        (nibble && (side || scale || reach_bytes || (bits - 1) % 8 > 3)) || (words && bits % 4))
      throw std::invalid_argument("the blocks do not fit n and bits");
    base_.blocks = blocks.data();
    base_.n = n;
    base_.bits = bits;
    base_.bytes = blocks.shape(1);
    base_.side = side;
    base_.nibble = nibble;
    base_.words = words;
    base_.bias0 = bias0;
    if (cell_ends) {
      if (!positions || positions->shape(0) != n || n != count * scan_block || cell_ends->shape(0) == 0)
        throw std::invalid_argument("cells need a position for every place of whole blocks");
      std::int64_t last = 0;
      for (std::size_t i = 0; i < cell_ends->shape(0); ++i) {
        if (cell_ends->data()[i] < last) throw std::invalid_argument("cells out of order");
        last = cell_ends->data()[i];
      }
      if (last != static_cast<std::int64_t>(count)) throw std::invalid_argument("the cells do not fit the blocks");
      base_.positions = positions->data();
      base_.cell_ends = cell_ends->data();
      base_.cells = cell_ends->shape(0);
    }
    const std::size_t padded_n = count * scan_block;
    if (reach_bytes) {
      if (reach_bytes->shape(0) != padded_n || !bias_bytes || bias_bytes->shape(0) != padded_n || ranges.size() != 4)
        throw std::invalid_argument("terms must be padded to whole blocks");
      for (const double value : ranges)
        if (!std::isfinite(value)) throw std::invalid_argument("terms out of range");
      base_.reach_bytes = reach_bytes->data();
      base_.bias_bytes = bias_bytes->data();
      base_.reach_low = ranges[0];
      base_.reach_step = ranges[1];
      base_.bias_low = ranges[2];
      base_.bias_step = ranges[3];
      base_.least_reach = static_cast<float>(ranges[0]);
      base_.most_reach = static_cast<float>((ranges[0] + 255 * ranges[1]) * (1 + 1e-6));
      base_.least_bias = static_cast<float>(ranges[2]);
      base_.most_bias = static_cast<float>(ranges[2] + 255 * ranges[3]);
      if (!(ranges[1] >= 0) || !(ranges[3] >= 0) || !std::isnormal(base_.least_reach) || !(ranges[0] > 0) ||
          !std::isnormal(base_.most_reach) || !std::isfinite(base_.least_bias) || !std::isfinite(base_.most_bias))
        throw std::invalid_argument("terms out of range");
      return;
    }
    if (!scale) return;
    if (scale->shape(0) != padded_n || (bias && bias->shape(0) != padded_n))
      throw std::invalid_argument("terms must be padded to whole blocks");
    base_.scale = scale->data();
    base_.bias = bias ? bias->data() : nullptr;
    reach_ = Aligned<float>(padded_n);
    base_.reach = reach_.data();
    base_.least_reach = base_.least_bias = std::numeric_limits<float>::infinity();
    base_.most_bias = -base_.least_bias;
    for (std::size_t i = 0; i < n; ++i) {
      const float s = base_.scale[i], b = base_.bias ? base_.bias[i] : bias0;
      if (!(s <= 0) || !std::isfinite(s) || !std::isfinite(b)) throw std::invalid_argument("terms out of range");
      base_.least_bias = std::min(base_.least_bias, b);
      base_.most_bias = std::max(base_.most_bias, b);
      reach_[i] = -0.5f / s;
      if (!std::isnormal(reach_[i])) {
        reach_[i] = std::numeric_limits<float>::quiet_NaN();
        base_.unreachable = true;
        continue;
      }
      base_.least_reach = std::min(base_.least_reach, reach_[i]);
      base_.most_reach = std::max(base_.most_reach, reach_[i]);
    }
    base_.least_reach = std::min(base_.least_reach, base_.most_reach);
  }

  nb::typed<nb::tuple, nb::any, nb::any> search(Matrix<std::int32_t> weights, Vector units, std::size_t k,
                                                unsigned threads, std::optional<Matrix<std::int32_t>> side_weights,
                                                std::optional<Matrix<double>> offsets, std::optional<Longs> positions,
                                                std::optional<Matrix<std::int64_t>> probes) const {
    const std::size_t visited = probes ? probes->shape(1) : base_.cells;
    ScanJob job = with(weights, units, side_weights, visited);
    if ((offsets ? offsets->shape(1) : 0) != visited || (offsets && offsets->shape(0) != job.queries))
      throw std::invalid_argument("the offsets do not fit");
    if (offsets) {
      for (std::size_t i = 0; i < offsets->size(); ++i)
        if (!std::isfinite(offsets->data()[i])) throw std::invalid_argument("an offset is not finite");
      for (std::size_t i = 0; i < units.size(); ++i)
        if (!(units.data()[i] > 0)) throw std::invalid_argument("a unit is not positive");
      job.offsets = offsets->data();
    }
    if (positions) {
      if (!job.positions || positions->shape(0) != job.n) throw std::invalid_argument("the positions do not fit");
      job.positions = positions->data();
    }
    if (probes) {
      if (!job.cells || probes->shape(0) != job.queries || visited == 0)
        throw std::invalid_argument("the probes do not fit");
      for (std::size_t i = 0; i < probes->size(); ++i)
        if (probes->data()[i] < 0 || probes->data()[i] >= static_cast<std::int64_t>(job.cells))
          throw std::invalid_argument("a probe is not a cell");
      job.probes = probes->data();
      job.probe_count = probes->shape(1);
    }
    auto scores = array<double>(job.queries * k);
    auto ids = array<std::int64_t>(job.queries * k);
    job.k = k;
    job.threads = threads;
    job.scores = scores.get();
    job.ids = ids.get();
    {
      nb::gil_scoped_release release;
      kernels().scan(job);
    }
    return nb::make_tuple(owned(std::move(scores), {job.queries, k}), owned(std::move(ids), {job.queries, k}));
  }

  nb::ndarray<nb::numpy, double> score(Matrix<std::int32_t> weights, Vector units, Matrix<std::int64_t> ids,
                                       std::optional<Matrix<std::int32_t>> side_weights) const {
    const ScanJob base = with(weights, units, side_weights, base_.cells);
    if (base.cells > 1) throw std::invalid_argument("codes in several cells are searched whole");
    const std::size_t count = ids.shape(1);
    if (ids.shape(0) != base.queries) throw std::invalid_argument("one row of ids a query");
    for (std::size_t i = 0; i < base.queries * count; ++i)
      if (ids.data()[i] >= static_cast<std::int64_t>(base.n)) throw std::invalid_argument("an id is out of range");
    auto scores = array<double>(base.queries * count);
    ScoreJob job;
    job.base = &base;
    job.ids = ids.data();
    job.count = count;
    job.scores = scores.get();
    {
      nb::gil_scoped_release release;
      score_codes(job);
    }
    return owned(std::move(scores), {base.queries, count});
  }

 private:
  ScanJob with(const Matrix<std::int32_t>& weights, const Vector& units,
               const std::optional<Matrix<std::int32_t>>& side_weights, std::size_t visited) const {
    if (weights.shape(1) != base_.columns() || units.shape(0) != weights.shape(0))
      throw std::invalid_argument("the weights do not fit the codes");
    bool within = true;
    for (const std::int32_t *w = weights.data(), *end = w + weights.size(); w < end; ++w)
      within &= *w > -(1 << 24) && *w < (1 << 24);
    if (!within) throw std::invalid_argument("a weight is out of range");
    ScanJob job = base_;
    job.weights = weights.data();
    job.unit = units.data();
    job.queries = weights.shape(0);
    const std::size_t numbers = job.nibble ? std::max<std::size_t>(visited, 1) : job.side;
    if ((side_weights ? side_weights->shape(1) : 0) != numbers ||
        (side_weights && side_weights->shape(0) != job.queries))
      throw std::invalid_argument("the side weights do not fit");
    if (!side_weights) return job;
    for (std::size_t i = 0; i < side_weights->size(); ++i)
      if (side_weights->data()[i] < 0 || side_weights->data()[i] >= (1 << 23))
        throw std::invalid_argument("a side weight is out of range");
    job.side_weights = side_weights->data();
    return job;
  }

  Codes blocks_;
  std::optional<Terms> scale_, bias_;
  std::optional<Longs> positions_, cell_ends_;
  std::optional<Bytes> reach_bytes_, bias_bytes_;
  Aligned<float> reach_;
  ScanJob base_;
};

nb::ndarray<nb::numpy, double> project(Matrix<double> x, Matrix<double> m, unsigned threads) {
  if (x.shape(1) != m.shape(0)) throw std::invalid_argument("the matrices do not fit");
  auto out = array<double>(x.shape(0) * m.shape(1));
  ProjectJob job;
  job.x = x.data();
  job.m = m.data();
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
nb::ndarray<nb::numpy, std::int64_t> nearest(Matrix<double> x, Matrix<double> m, Vector half, unsigned threads) {
  if (x.shape(1) != m.shape(0) || half.shape(0) != m.shape(1) || m.shape(1) == 0)
    throw std::invalid_argument("the matrices do not fit");
  auto labels = array<std::int64_t>(x.shape(0));
  ProjectJob job;
  job.x = x.data();
  job.m = m.data();
  job.half = half.data();
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

// Rows of values as integers times a unit each.
nb::typed<nb::tuple, nb::any, nb::any> round_weights(Matrix<double> values, double at_least) {
  const std::size_t n = values.shape(0), count = values.shape(1);
  auto rounded = array<std::int32_t>(n * count);
  auto units = array<double>(n);
  kernels().round_rows(values.data(), n, count, at_least, rounded.get(), units.get());
  return nb::make_tuple(owned(std::move(rounded), {n, count}), owned(std::move(units), {n}));
}

// Makes forms of queries, by a frame and, for probes, among some points.
class FormMaker {
 public:
  FormMaker(Matrix<double> frame, std::optional<Vector> shift, std::optional<Matrix<double>> points,
            std::optional<Vector> half, bool words)
      : columns_(frame.shape(1)), words_(words), frame_(frame.data(), frame.shape(0), columns_) {
    if (words && columns_ % word_count) throw std::invalid_argument("words come by 16");
    if (shift) {
      if (shift->shape(0) != frame_.d) throw std::invalid_argument("the shift does not fit");
      shift_.assign(shift->data(), shift->data() + frame_.d);
    }
    if (!points) return;
    if (points->shape(1) != frame_.d || !half || half->shape(0) != points->shape(0))
      throw std::invalid_argument("the points do not fit");
    points_ = Points(points->data(), half->data(), points->shape(0), frame_.d);
  }

  template <class T>
  nb::typed<nb::tuple, nb::any, nb::any, nb::any, nb::any, nb::any, nb::any> make(Matrix<T> x, double at_least,
                                                                                  std::size_t probes,
                                                                                  unsigned threads) const {
    if (x.shape(1) != frame_.d || probes > points_.all) throw std::invalid_argument("the queries do not fit");
    FormJob job;
    if constexpr (std::is_same_v<T, float>)
      job.single = x.data();
    else
      job.x = x.data();
    job.shift = shift_.empty() ? nullptr : shift_.data();
    job.frame = &frame_;
    job.n = x.shape(0);
    job.columns = columns_;
    job.words = words_;
    job.probes = probes;
    job.points = probes ? &points_ : nullptr;
    job.at_least = at_least;
    job.threads = threads;
    auto weights = array<std::int32_t>(job.n * columns_);
    auto units = array<double>(job.n), totals = array<double>(job.n), squares = array<double>(job.n);
    auto nearest = array<std::int64_t>(job.n * probes);
    auto products = array<double>(job.n * probes);
    job.weights = weights.get();
    job.units = units.get();
    job.totals = totals.get();
    job.squares = squares.get();
    job.nearest = nearest.get();
    job.products = products.get();
    {
      nb::gil_scoped_release release;
      kernels().make_forms(job);
    }
    return nb::make_tuple(owned(std::move(weights), {job.n, columns_}), owned(std::move(units), {job.n}),
                          owned(std::move(totals), {job.n}), owned(std::move(squares), {job.n}),
                          owned(std::move(nearest), {job.n, probes}), owned(std::move(products), {job.n, probes}));
  }

 private:
  std::size_t columns_;
  bool words_;
  Panels frame_;
  std::vector<double> shift_;
  Points points_;
};

using Scales = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Improve code rows in place.
nb::typed<nb::tuple, nb::any, nb::any> refine(
    Matrix<float> correlations, Matrix<float> gram,
    nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> ends, std::size_t sweeps,
    std::size_t flips, std::size_t tenure, bool cosine,
    nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> bits, unsigned threads,
    std::optional<Scales> scales, std::size_t turns, float least_scale) {
  RefineJob job;
  job.n = correlations.shape(0);
  job.m = correlations.shape(1);
  job.blocks = ends.shape(0);
  if (job.m == 0 || gram.shape(0) != job.m || gram.shape(1) != job.m || bits.shape(0) != job.n ||
      bits.shape(1) != (job.m + 7) / 8)
    throw std::invalid_argument("the arrays do not fit");
  std::int64_t last = 0;
  for (std::size_t i = 0; i < job.blocks; ++i) {
    if (ends.data()[i] <= last) throw std::invalid_argument("blocks must not be empty");
    last = ends.data()[i];
  }
  if (last != static_cast<std::int64_t>(job.m)) throw std::invalid_argument("the blocks do not fit");
  if (flips >= (1 << 24) || tenure >= (1 << 23)) throw std::invalid_argument("too many flips");
  job.correlations = correlations.data();
  job.gram = gram.data();
  job.ends = ends.data();
  job.sweeps = sweeps;
  job.flips = flips;
  job.tenure = tenure;
  job.objective = cosine ? Objective::cosine : Objective::euclidean;
  job.bits = bits.data();
  job.threads = threads;
  if (scales) {
    if (scales->shape(0) != job.n) throw std::invalid_argument("the scales do not fit");
    job.scales = scales->data();
    job.least_scale = least_scale;
    job.turns = turns;
  } else if (turns > 0) {
    throw std::invalid_argument("turns need scales");
  }
  auto along = array<float>(job.n), size = array<float>(job.n);
  job.along = along.get();
  job.size = size.get();
  {
    nb::gil_scoped_release release;
    kernels().refine(job);
  }
  return nb::make_tuple(owned(std::move(along), {job.n}), owned(std::move(size), {job.n}));
}

// A frame of words prepared.
class Words {
 public:
  using Panels = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

  Words(Panels frame, Matrix<float> gram) : frame_(checked(frame, gram)) {}

  // The words of vectors, in place of what the code rows hold.
  nb::typed<nb::tuple, nb::any, nb::any> find(
      Matrix<double> y, double factor, std::size_t moves, std::size_t tenure,
      nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> bits, unsigned threads) const {
    WordJob job;
    job.frame = &frame_;
    job.n = y.shape(0);
    if (y.shape(1) != frame_.d || bits.shape(0) != job.n || bits.shape(1) != (frame_.groups + 1) / 2)
      throw std::invalid_argument("the arrays do not fit");
    job.y = y.data();
    job.factor = factor;
    job.moves = moves;
    job.tenure = tenure;
    job.bits = bits.data();
    job.threads = threads;
    auto along = array<float>(job.n), size = array<float>(job.n);
    job.along = along.get();
    job.size = size.get();
    {
      nb::gil_scoped_release release;
      kernels().find_words(job);
    }
    return nb::make_tuple(owned(std::move(along), {job.n}), owned(std::move(size), {job.n}));
  }

 private:
  static WordFrame checked(const Panels& frame, const Matrix<float>& gram) {
    const std::size_t groups = frame.shape(0), d = frame.shape(1), columns = word_count * groups;
    if (d == 0 || columns == 0 || columns > most_words || frame.shape(2) != word_count || gram.shape(0) != columns ||
        gram.shape(1) != columns)
      throw std::invalid_argument("the arrays do not fit");
    return WordFrame(frame.data(), gram.data(), d, groups);
  }

  WordFrame frame_;
};

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native kernels of antisparse. Private: the signatures change without notice.";
  nb::set_leak_warnings(false);  // an object still alive when the interpreter ends is no leak
  choose_kernels();
  m.def("isa", [] { return std::string(kernels().isa); }, "The instruction set in use.");
  m.def(
      "use_isa",
      [](const std::string& name) {
        if (!use_isa(name.c_str())) throw std::invalid_argument("no such instruction set on this machine: " + name);
      },
      "name"_a, "Switch the instruction set in use (for tests).");
  m.def(
      "orthonormal_rows",
      [](Output rows) {
        if (rows.shape(0) > rows.shape(1)) throw std::invalid_argument("more rows than columns");
        nb::gil_scoped_release release;
        return orthonormal_rows(rows.data(), rows.shape(0), rows.shape(1));
      },
      "rows"_a.noconvert(), "Orthonormalise the rows in place; False where they are dependent.");
  m.def("project", &project, "x"_a.noconvert(), "m"_a.noconvert(), "threads"_a, "x @ m, row by row alike.");
  m.def("nearest", &nearest, "x"_a.noconvert(), "m"_a.noconvert(), "half"_a.noconvert(), "threads"_a,
        "The first column k of m of least half[k] - x @ m[:, k], for every row.");
  m.def("refine", &refine, "correlations"_a.noconvert(), "gram"_a.noconvert(), "ends"_a.noconvert(), "sweeps"_a,
        "flips"_a, "tenure"_a, "cosine"_a, "bits"_a.noconvert(), "threads"_a,
        "scales"_a.noconvert().none() = nb::none(), "turns"_a = 0, "least_scale"_a = 0,
        "Improve code rows in place, scales too; returns c.b and b.G b of every row.");
  m.def("round_weights", &round_weights, "values"_a.noconvert(), "at_least"_a,
        "Rows as integers below 2^24 times a power of two each, NaN where a value is not finite.");
  nb::class_<FormMaker>(m, "FormMaker", "Makes queries ready for the scan.")
      .def(
          nb::init<Matrix<double>, std::optional<Vector>, std::optional<Matrix<double>>, std::optional<Vector>, bool>(),
          "frame"_a.noconvert(), "shift"_a.noconvert().none() = nb::none(), "points"_a.noconvert().none() = nb::none(),
          "half"_a.noconvert().none() = nb::none(), "words"_a = false)
      .def("make", &FormMaker::make<float>, "x"_a.noconvert(), "at_least"_a, "probes"_a, "threads"_a)
      .def("make", &FormMaker::make<double>, "x"_a.noconvert(), "at_least"_a, "probes"_a, "threads"_a,
           "Weights, units, totals, squares, nearest points and products with these (native/form.hpp).");
  nb::class_<ScanBase>(m, "ScanBase", "Codes in scan layout with their terms, ready to be searched.")
      .def(nb::init<ScanBase::Codes, std::size_t, std::size_t, std::optional<ScanBase::Terms>,
                    std::optional<ScanBase::Terms>, float, std::size_t, std::optional<ScanBase::Longs>,
                    std::optional<ScanBase::Longs>, std::optional<ScanBase::Bytes>, std::optional<ScanBase::Bytes>,
                    std::vector<double>, bool, bool>(),
           "blocks"_a.noconvert(), "n"_a, "bits"_a, "scale"_a.noconvert().none(), "bias"_a.noconvert().none(),
           "bias0"_a, "side"_a = 0, "positions"_a.noconvert().none() = nb::none(),
           "cell_ends"_a.noconvert().none() = nb::none(), "reach_bytes"_a.noconvert().none() = nb::none(),
           "bias_bytes"_a.noconvert().none() = nb::none(), "ranges"_a = std::vector<double>(), "nibble"_a = false,
           "words"_a = false)
      .def("search", &ScanBase::search, "weights"_a.noconvert(), "units"_a.noconvert(), "k"_a, "threads"_a,
           "side_weights"_a.noconvert().none() = nb::none(), "offsets"_a.noconvert().none() = nb::none(),
           "positions"_a.noconvert().none() = nb::none(), "probes"_a.noconvert().none() = nb::none())
      .def("score", &ScanBase::score, "weights"_a.noconvert(), "units"_a.noconvert(), "ids"_a.noconvert(),
           "side_weights"_a.noconvert().none() = nb::none());
  nb::class_<Words>(m, "Words", "A frame of words prepared for finding codes.")
      .def(nb::init<Words::Panels, Matrix<float>>(), "frame"_a.noconvert(), "gram"_a.noconvert())
      .def("find", &Words::find, "y"_a.noconvert(), "factor"_a, "moves"_a, "tenure"_a, "bits"_a.noconvert(),
           "threads"_a, "Write the words of vectors; returns c.x and x.G x of every row.");
  nb::class_<SpreadFrame>(m, "SpreadFrame", "A frame prepared for the spread solver.")
      .def(nb::init<const std::vector<Matrix<double>>&, std::optional<Matrix<double>>, int>(), "blocks"_a,
           "rotation"_a.none(), "exponent"_a)
      .def("solve", &SpreadFrame::solve<float>, "vectors"_a.noconvert(), "h"_a, "relative"_a, "max_steps"_a,
           "threads"_a, "want_bits"_a)
      .def("solve", &SpreadFrame::solve<double>, "vectors"_a.noconvert(), "h"_a, "relative"_a, "max_steps"_a,
           "threads"_a, "want_bits"_a);
}
