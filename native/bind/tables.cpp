#include <memory>
#include <type_traits>
#include <vector>

#include "bind/arrays.hpp"
#include "kernels.hpp"
#include "tables/table_job.hpp"

namespace antisparse::bind {

namespace {

// Rows of values as integers times a unit each.
Pair round_rows(Matrix<double> values, double at_least) {
  const std::size_t n = values.shape(0), count = values.shape(1);
  auto rounded = array<std::int32_t>(n * count);
  auto units = array<double>(n);
  {
    nb::gil_scoped_release release;
    kernels().round_rows(data_of(values), n, count, at_least, rounded.get(), units.get());
  }
  return nb::make_tuple(owned(std::move(rounded), {n, count}), owned(std::move(units), {n}));
}

nb::ndarray<nb::numpy, std::int32_t> sign_tables(Matrix<std::int32_t> weights, std::size_t nibbles) {
  SignTableJob job;
  job.n = weights.shape(0);
  job.bits = weights.shape(1);
  job.nibbles = nibbles;
  require(nibbles >= (job.bits + 3) / 4, "nibbles: fewer than the weights need");
  job.weights = data_of(weights);
  auto tables = array<std::int32_t>(job.n * nibbles * 16);
  job.tables = tables.get();
  {
    nb::gil_scoped_release release;
    kernels().make_sign_tables(job);
  }
  return owned(std::move(tables), {job.n, nibbles, 16});
}

// Points among which the nearest are looked for. Those who look for them keep them alive: see the binding.
class BoundPoints {
 public:
  BoundPoints(Matrix<double> points, Vector<double> half) {
    require(points.shape(0) > 0 && half.shape(0) == points.shape(0), "the points do not fit");
    const double* const rows = data_of(points);
    const double* const halves = data_of(half);
    nb::gil_scoped_release release;
    points_ = std::make_unique<const Points>(rows, halves, points.shape(0), points.shape(1));
  }

  const Points* get() const { return points_.get(); }
  bool ordered() const { return points_->above != nullptr; }

  template <class T>
  Pair nearest(Matrix<T> x, std::size_t wanted, unsigned threads) const {
    require(x.shape(1) == points_->d && 0 < wanted && wanted <= points_->all, "the vectors do not fit");
    NearestJob job;
    if constexpr (std::is_same_v<T, float>)
      job.single = data_of(x);
    else
      job.x = data_of(x);
    job.points = points_.get();
    job.n = x.shape(0);
    job.wanted = wanted;
    job.threads = threads;
    auto nearest = array<std::int64_t>(job.n * wanted);
    auto products = array<double>(job.n * wanted);
    job.nearest = nearest.get();
    job.products = products.get();
    {
      nb::gil_scoped_release release;
      kernels().find_nearest(job);
    }
    return nb::make_tuple(owned(std::move(nearest), {job.n, wanted}), owned(std::move(products), {job.n, wanted}));
  }

 private:
  std::unique_ptr<const Points> points_;
};

// Makes tables of queries, by the blocks along the diagonal of a frame and, for probes, among some points.
class TableMaker {
 public:
  TableMaker(const std::vector<Matrix<double>>& blocks, std::size_t columns_per_nibble, std::size_t nibbles,
             const std::optional<Vector<double>>& shift, const BoundPoints* points)
      : nibbles_(nibbles), signs_(columns_per_nibble == 4) {
    require(signs_ || columns_per_nibble == 16, "columns_per_nibble must be 4 or 16");
    for (const Matrix<double>& block : blocks) {
      require(columns_ % Panels<double>::width == 0, "blocks: all but the last must have a multiple of 8 columns");
      require(signs_ || block.shape(1) % 16 == 0, "blocks: the columns of codebooks come by 16");
      blocks_.emplace_back(data_of(block), block.shape(0), block.shape(1));
      d_ += block.shape(0);
      columns_ += block.shape(1);
    }
    require(nibbles >= (columns_ + columns_per_nibble - 1) / columns_per_nibble,
            "nibbles: fewer than the columns need");
    if (shift) {
      require(shift->shape(0) == d_, "the shift does not fit");
      const double* given = data_of(*shift);
      shift_.assign(given, given + d_);
    }
    if (!points) return;
    points_ = points->get();
    require(points_->d == d_, "the points do not fit");
  }
  TableMaker(const TableMaker&) = delete;
  TableMaker& operator=(const TableMaker&) = delete;

  template <class T>
  nb::typed<nb::tuple, nb::any, nb::any, nb::any, nb::any, nb::any, nb::any> make(Matrix<T> x, double at_least,
                                                                                  std::size_t probes,
                                                                                  unsigned threads) const {
    require(x.shape(1) == d_ && probes <= (points_ ? points_->all : 0), "the queries do not fit");
    TableJob job;
    if constexpr (std::is_same_v<T, float>)
      job.single = data_of(x);
    else
      job.x = data_of(x);
    job.shift = shift_.empty() ? nullptr : shift_.data();
    job.blocks = &blocks_;
    job.d = d_;
    job.n = x.shape(0);
    job.columns = columns_;
    job.signs = signs_;
    job.nibbles = nibbles_;
    job.probes = probes;
    job.points = points_;
    job.at_least = at_least;
    job.threads = threads;
    auto tables = array<std::int32_t>(job.n * nibbles_ * 16);
    auto units = array<double>(job.n), peaks = array<double>(job.n), squares = array<double>(job.n);
    auto nearest = array<std::int64_t>(job.n * probes);
    auto products = array<double>(job.n * probes);
    job.tables = tables.get();
    job.units = units.get();
    job.peaks = peaks.get();
    job.squares = squares.get();
    job.nearest = nearest.get();
    job.products = products.get();
    {
      nb::gil_scoped_release release;
      kernels().make_tables(job);
    }
    return nb::make_tuple(owned(std::move(tables), {job.n, nibbles_, 16}), owned(std::move(units), {job.n}),
                          owned(std::move(peaks), {job.n}), owned(std::move(squares), {job.n}),
                          owned(std::move(nearest), {job.n, probes}), owned(std::move(products), {job.n, probes}));
  }

 private:
  std::size_t d_ = 0, columns_ = 0, nibbles_;
  bool signs_;
  std::vector<Panels<double>> blocks_;
  std::vector<double> shift_;
  const Points* points_ = nullptr;
};

}  // namespace

void bind_tables(nb::module_& m) {
  m.def("round_rows", &round_rows, "values"_a.noconvert(), "at_least"_a,
        "Rows as integers below 2^24 times a power of two each, NaN where a value is not finite.");
  m.def("sign_tables", &sign_tables, "weights"_a.noconvert(), "nibbles"_a,
        "Tables (queries, nibbles, 16) of signs, from integer weights: the sum of |W| over the bits that disagree.");
  nb::class_<BoundPoints>(m, "Points", "Points among which the nearest are looked for (tables/points.hpp).")
      .def(nb::init<Matrix<double>, Vector<double>>(), "points"_a.noconvert(), "half"_a.noconvert())
      .def_prop_ro("ordered", &BoundPoints::ordered,
                   "Whether they are many, and those that stand beside each other are near each other.")
      .def("nearest", &BoundPoints::nearest<float>, "x"_a.noconvert(), "wanted"_a, "threads"_a)
      .def("nearest", &BoundPoints::nearest<double>, "x"_a.noconvert(), "wanted"_a, "threads"_a,
           "The points k of least half[k] - x @ points[k] for every row, in this order, and these products: all of the "
           "nearest, or, of ordered points, nearly all.");
  nb::class_<TableMaker>(m, "TableMaker", "Makes queries ready for the scan.")
      .def(nb::init<const std::vector<Matrix<double>>&, std::size_t, std::size_t, const std::optional<Vector<double>>&,
                    const BoundPoints*>(),
           "blocks"_a, "columns_per_nibble"_a, "nibbles"_a, nb::kw_only(), "shift"_a.noconvert().none() = nb::none(),
           "points"_a.none() = nb::none(), nb::keep_alive<1, 6>())  // the maker keeps its points
      .def("make", &TableMaker::make<float>, "x"_a.noconvert(), "at_least"_a, "probes"_a, "threads"_a)
      .def("make", &TableMaker::make<double>, "x"_a.noconvert(), "at_least"_a, "probes"_a, "threads"_a,
           "Tables, units, peaks, squared norms, nearest points and dot products with these (tables/table_job.hpp).");
}

}  // namespace antisparse::bind
