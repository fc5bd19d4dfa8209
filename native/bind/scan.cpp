#include "scan/scan.hpp"

#include "bind/arrays.hpp"
#include "bind/ids.hpp"
#include "kernels.hpp"

namespace antisparse::bind {

namespace {

// Queries as tables. Keeps the arrays it was given alive.
class QueryTables {
 public:
  QueryTables(Array<std::int32_t, 3> tables, Vector<double> units, Matrix<double> offsets,
              const std::optional<Vector<double>>& base, const std::optional<Matrix<std::int64_t>>& probes,
              const std::optional<Matrix<std::int32_t>>& cell_steps)
      : tables_(tables), units_(units), offsets_(offsets), base_(base), probes_(probes), cell_steps_(cell_steps) {
    const std::size_t count = tables.shape(0), visited = offsets.shape(1);
    const auto fits = [&](const auto& array) {
      return !array || (array->shape(0) == count && array->shape(1) == visited);
    };
    require(tables.shape(2) == 16, "tables: a nibble has 16 values");
    require(units.shape(0) == count, "units: one a query");
    require(offsets.shape(0) == count, "offsets: one row a query");
    require(!base || base->shape(0) == count, "base: one a query");
    require(fits(probes), "probes: as many as offsets");
    require(fits(cell_steps), "cell_steps: as many as offsets");
    queries_.tables = data_of(tables);
    queries_.count = count;
    queries_.nibbles = tables.shape(1);
    queries_.units = data_of(units);
    queries_.offsets = data_of(offsets);
    queries_.visited = visited;
    queries_.base = data_or_null(base);
    queries_.probes = data_or_null(probes);
    queries_.cell_steps = data_or_null(cell_steps);
  }

  const Queries& queries() const { return queries_; }

 private:
  Array<std::int32_t, 3> tables_;
  Vector<double> units_;
  Matrix<double> offsets_;
  std::optional<Vector<double>> base_;
  std::optional<Matrix<std::int64_t>> probes_;
  std::optional<Matrix<std::int32_t>> cell_steps_;
  Queries queries_;
};

// Codes in columns, ready to be searched. Keeps the arrays it was given alive.
class BoundColumns {
 public:
  using Longs = std::optional<Vector<std::int64_t>>;
  using Words = std::optional<Vector<std::uint32_t>>;

  BoundColumns(Array<std::uint8_t, 3> blocks, std::size_t n, const Longs& ids, const BoundIds* id_list,
               const Longs& cell_ends, const std::optional<Vector<float>>& scales,
               const std::optional<Vector<std::uint8_t>>& inverse_scales, double inverse_scale_low,
               double inverse_scale_step)
      : blocks_(checked(blocks, ids, id_list)),
        ids_(ids),
        cell_ends_(cell_ends),
        scales_(scales),
        inverse_scales_(inverse_scales),
        columns_(blocks.data(), blocks.shape(0), blocks.shape(1), n,
                 {data_or_null(ids), id_list ? &id_list->list() : nullptr}, data_or_null(cell_ends),
                 cell_ends ? cell_ends->shape(0) : 1) {
    const std::size_t places = blocks.shape(0) * scan_block;
    require(!scales || !inverse_scales, "scales and inverse_scales: a code has one column at most");
    require(!scales || scales->shape(0) == places, "scales: one for each place of the blocks");
    require(!inverse_scales || inverse_scales->shape(0) == places, "inverse_scales: one for each place of the blocks");
    if (scales) columns_.set_scales(data_of(*scales));
    if (inverse_scales) columns_.set_inverse_scales(inverse_scales->data(), inverse_scale_low, inverse_scale_step);
  }

  Pair search(const QueryTables& queries, std::size_t k, unsigned threads, const Words& live) const {
    ScanJob job;
    job.codes = columns_.codes();
    job.queries = queries.queries();
    require(k > 0 && threads > 0, "k and threads must be positive");
    require(!live || live->shape(0) == job.codes.block_count, "live: a word of 32 bits for each block");
    job.codes.ids.live = data_or_null(live);
    auto scores = array<double>(job.queries.count * k);
    auto found = array<std::int64_t>(job.queries.count * k);
    job.k = k;
    job.threads = threads;
    job.scores = scores.get();
    job.ids = found.get();
    {
      nb::gil_scoped_release release;
      check(job.queries, job.codes);
      kernels().scan(job);
    }
    return nb::make_tuple(owned(std::move(scores), {job.queries.count, k}),
                          owned(std::move(found), {job.queries.count, k}));
  }

  nb::ndarray<nb::numpy, double> score(const QueryTables& queries, Matrix<std::int64_t> places) const {
    ScoreJob job;
    job.codes = columns_.codes();
    job.queries = queries.queries();
    job.count = places.shape(1);
    require(places.shape(0) == job.queries.count, "places: one row a query");
    require(!job.queries.probes, "probes: codes are scored by queries that visit all cells");
    job.places = data_of(places);
    auto scores = array<double>(job.queries.count * job.count);
    job.scores = scores.get();
    {
      nb::gil_scoped_release release;
      check(job.queries, job.codes);
      score_codes(job);
    }
    return owned(std::move(scores), {job.queries.count, job.count});
  }

 private:
  static Array<std::uint8_t, 3> checked(const Array<std::uint8_t, 3>& blocks, const Longs& ids,
                                        const BoundIds* id_list) {
    require(blocks.shape(2) == scan_block, "blocks: of 32 codes each");
    require(!ids || ids->shape(0) == blocks.shape(0) * scan_block, "ids: one for each place of the blocks");
    require(!id_list || (!ids && id_list->list().blocks == blocks.shape(0)), "id_list: one for each place, or ids");
    return blocks;
  }

  Array<std::uint8_t, 3> blocks_;
  Longs ids_, cell_ends_;
  std::optional<Vector<float>> scales_;
  std::optional<Vector<std::uint8_t>> inverse_scales_;
  CodeColumns columns_;
};

}  // namespace

void bind_scan(nb::module_& m) {
  using Longs = BoundColumns::Longs;
  nb::class_<QueryTables>(m, "QueryTables", "Queries as tables of 16 integers for each nibble of a code.")
      .def(nb::init<Array<std::int32_t, 3>, Vector<double>, Matrix<double>, const std::optional<Vector<double>>&,
                    const std::optional<Matrix<std::int64_t>>&, const std::optional<Matrix<std::int32_t>>&>(),
           "tables"_a.noconvert(), "units"_a.noconvert(), "offsets"_a.noconvert(), nb::kw_only(),
           "base"_a.noconvert().none() = nb::none(), "probes"_a.noconvert().none() = nb::none(),
           "cell_steps"_a.noconvert().none() = nb::none());
  nb::class_<BoundColumns>(m, "CodeColumns", "Codes as rows of nibbles, with ids, cells and at most one column.")
      .def(nb::init<Array<std::uint8_t, 3>, std::size_t, const Longs&, const BoundIds*, const Longs&,
                    const std::optional<Vector<float>>&, const std::optional<Vector<std::uint8_t>>&, double, double>(),
           "blocks"_a.noconvert(), "n"_a, nb::kw_only(), "ids"_a.noconvert().none() = nb::none(),
           "id_list"_a.none() = nb::none(), "cell_ends"_a.noconvert().none() = nb::none(),
           "scales"_a.noconvert().none() = nb::none(), "inverse_scales"_a.noconvert().none() = nb::none(),
           "inverse_scale_low"_a = 0.0, "inverse_scale_step"_a = 0.0, nb::keep_alive<1, 5>())
      .def("search", &BoundColumns::search, "queries"_a, "k"_a, "threads"_a, "live"_a.noconvert().none() = nb::none(),
           "Scores and ids of the k best codes of each query. `live`, a bit a place, says which codes may be found.")
      .def("score", &BoundColumns::score, "queries"_a, "places"_a.noconvert(),
           "Scores of the codes at given places, infinity where a place is negative.");
}

}  // namespace antisparse::bind
