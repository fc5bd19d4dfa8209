#include "codebooks/codebooks.hpp"

#include "bind/arrays.hpp"
#include "codebooks/moments.hpp"
#include "kernels.hpp"

namespace antisparse::bind {

namespace {

// Codebooks prepared for the search.
class Codebooks {
 public:
  Codebooks(Array<float, 3> frame, Matrix<float> gram) : frame_(checked(frame, gram)) {}

  // The codewords of vectors, in place of what the code rows hold.
  Pair find(Matrix<double> y, double factor, std::size_t moves, std::size_t tenure, Output<std::uint8_t, 2> bits,
            unsigned threads) const {
    CodebookJob job;
    job.frame = &frame_;
    job.n = y.shape(0);
    require(y.shape(1) == frame_.d && bits.shape(0) == job.n && bits.shape(1) == (frame_.books + 1) / 2,
            "the arrays do not fit");
    job.y = data_of(y);
    job.factor = factor;
    job.moves = moves;
    job.tenure = tenure;
    job.bits = bits.data();
    job.threads = threads;
    auto dot = array<float>(job.n), squared_norm = array<float>(job.n);
    job.dot = dot.get();
    job.squared_norm = squared_norm.get();
    {
      nb::gil_scoped_release release;
      kernels().find_codewords(job);
    }
    return nb::make_tuple(owned(std::move(dot), {job.n}), owned(std::move(squared_norm), {job.n}));
  }

 private:
  static CodebookFrame checked(const Array<float, 3>& frame, const Matrix<float>& gram) {
    const std::size_t books = frame.shape(0), d = frame.shape(1), columns = codewords * books;
    require(d > 0 && columns > 0 && columns <= most_codewords && frame.shape(2) == codewords &&
                gram.shape(0) == columns && gram.shape(1) == columns,
            "the arrays do not fit");
    return CodebookFrame(data_of(frame), data_of(gram), d, books);
  }

  CodebookFrame frame_;
};

void add_moments(Matrix<std::uint8_t> bits, std::size_t books, Matrix<double> y, Output<std::uint32_t, 2> counts,
                 Output<double, 2> sums, unsigned threads) {
  MomentJob job;
  job.n = bits.shape(0);
  job.d = y.shape(1);
  job.books = books;
  const std::size_t columns = codewords * books;
  require(books > 0 && columns <= most_codewords && bits.shape(1) == (books + 1) / 2 && y.shape(0) == job.n &&
              counts.shape(0) == columns && counts.shape(1) == columns && sums.shape(0) == columns &&
              sums.shape(1) == job.d,
          "the arrays do not fit");
  job.bits = data_of(bits);
  job.y = data_of(y);
  job.counts = data_of(counts);
  job.sums = data_of(sums);
  job.threads = threads;
  nb::gil_scoped_release release;
  antisparse::add_moments(job);
}

}  // namespace

void bind_codebooks(nb::module_& m) {
  m.def("add_moments", &add_moments, "bits"_a.noconvert(), "books"_a, "y"_a.noconvert(), "counts"_a.noconvert(),
        "sums"_a.noconvert(), "threads"_a,
        "Add how often codewords were chosen together, those of the first codebook by rows, and the vectors of each.");
  nb::class_<Codebooks>(m, "Codebooks", "Codebooks of 16 codewords each, prepared for finding codes.")
      .def(nb::init<Array<float, 3>, Matrix<float>>(), "frame"_a.noconvert(), "gram"_a.noconvert())
      .def("find", &Codebooks::find, "y"_a.noconvert(), "factor"_a, "moves"_a, "tenure"_a, "bits"_a.noconvert(),
           "threads"_a, "Write the codewords of vectors; returns c.x and x.G x of every row.");
}

}  // namespace antisparse::bind
