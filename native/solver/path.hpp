// The path of one vector: the blocks' pieces merged on t; the fast way first, and where its certificate fails the fast
// way in double, then the sure way.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "machine/watch.hpp"
#include "solver/gram.hpp"
#include "solver/orthogonal.hpp"
#include "solver/spread.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Where following a path ended.
template <class T>
struct End {
  bool reached = false;  // false: the step limit, a factor that refused a column, or a leap too far
  bool limit = false;
  T t = 0;
  std::size_t steps = 0;
};

// One block on its way: its piece, the piece's end, and, once its residual has vanished, where it stopped.
template <class Piece, class T>
struct Track {
  Piece piece;
  Event<T> event;
  bool done = false;
  T t_done = 0;
  explicit Track(const Block<T>& b) : piece(b) {}

  // Move::none marks the end of the block's path, h_b = 0. It wins ties: there all its correlations vanish together.
  void schedule(T now) {
    constexpr T rounding = 16 * std::numeric_limits<T>::epsilon();
    event = next_event<T>(piece, now);
    if (event.move != Move::none && piece.h(event.t) > rounding * piece.h1) return;
    const T end = piece.upsilon > 0 ? piece.eta / piece.upsilon : now;
    event = {std::max(end, now), Move::none, 0, 0};
  }
};

// Takes a block past all its events up to t. False where it must stop before: then `end` says why.
template <class Piece, class T>
bool advance(Track<Piece, T>& track, T t, std::size_t max_steps, End<T>& end) {
  while (!track.done && track.event.t <= t) {
    const Event<T> event = track.event;
    if (event.move == Move::none) {
      track.done = true;
      track.t_done = event.t;
      return true;
    }
    end.limit = end.steps == max_steps;
    if (end.limit) return false;
    ++end.steps;
    tick(track.piece.block.m * (track.piece.k + track.piece.block.d));
    if (event.move == Move::stick)
      track.piece.stick(event.at, event.sign, event.t);
    else if (!track.piece.release(event.at, event.t))
      return false;
    track.schedule(event.t);
  }
  return true;
}

// Follows the joint path down to h. For a given t the blocks are independent, and h(t) is the sum of theirs: so the
// joint path takes the blocks' events in the order of t, until h(t) reaches h. A block whose residual has vanished
// stays put. In what order blocks pass events well before the end makes no difference; with `leap`, each is taken as
// far as the present slope of h(t) allows at a time, while it is in cache. Should the slope have misled, `reached` is
// false.
template <class Piece, class T>
End<T> follow(std::vector<Track<Piece, T>>& tracks, T h, std::size_t max_steps, bool leap) {
  End<T> end;
  T eta, upsilon;
  Track<Piece, T>* next;
  const auto look = [&] {
    eta = upsilon = 0;
    next = nullptr;
    for (auto& track : tracks) {
      if (track.done) continue;
      eta += track.piece.eta;
      upsilon += track.piece.upsilon;
      if (!next || track.event.t < next->event.t) next = &track;
    }
  };
  for (auto& track : tracks) {
    track.done = track.piece.h1 == 0;
    track.t_done = 0;
    if (!track.done) track.schedule(0);
  }
  if (h == 0) {  // to the end of every block
    for (auto& track : tracks) {
      if (!advance(track, std::numeric_limits<T>::infinity(), max_steps, end)) return end;
      end.t = std::max(end.t, track.t_done);
    }
    end.reached = true;
    return end;
  }
  for (std::size_t before; leap;) {
    look();
    before = end.steps;
    const T t = end.t + T(0.9) * ((eta - h) / upsilon - end.t);
    if (!next || !(t > end.t)) break;
    for (auto& track : tracks)
      if (!advance(track, t, max_steps, end)) return end;
    end.t = t;
    look();
    if (!(eta - upsilon * t > h)) return end;
    if (end.steps - before < tracks.size()) break;
  }
  for (;;) {
    look();
    if (next && eta - upsilon * next->event.t > h) {
      end.t = next->event.t;
      if (!advance(*next, end.t, max_steps, end)) return end;
      continue;
    }
    // h is reached before the next event; with no block left, at h = 0 but for rounding.
    if (next) end.t = std::min(std::max((eta - h) / upsilon, end.t), next->event.t);
    end.reached = true;
    return end;
  }
}

// x of one block at t, in a padded array.
template <class Piece, class T>
void representation(const Piece& piece, T t, T* x) {
  for (std::size_t i = 0; i < piece.block.m; ++i) x[i] = piece.sign(i) * t + piece.fixed(i);
  for (std::size_t i = 0; i < piece.k; ++i)
    x[piece.free[i]] = std::min(std::max(piece.xi[i] + piece.zeta[i] * t, -t), t);
}

// What the optimality conditions need of one block: ||c||_1 and <c, x>.
template <class T>
struct Residual {
  Aligned<T> r, c;
  T c_norm = 0, c_x = 0;
  explicit Residual(const Block<T>& b) : r(b.dp), c(b.mp), negative_(b.mp) {}
  void form(const Block<T>& b, const T* y, const T* x) {
    for (std::size_t i = 0; i < b.mp; ++i) negative_[i] = -x[i];
    combine<T>(r.data(), y, b.columns.data(), b.dp, negative_.data(), b.m, b.dp);
    combine<T>(c.data(), nullptr, b.rows.data(), b.mp, r.data(), b.d, b.mp);
    c_norm = absolute_sum(c.data(), b.mp);
    c_x = dot(c.data(), x, b.mp);
  }

 private:
  Aligned<T> negative_;
};

// All a thread needs to follow paths with one kind of piece.
template <class Piece, class T>
class Follower {
 public:
  explicit Follower(const Frame<T>& frame) : frame_(frame) {
    tracks_.reserve(frame.blocks.size());
    for (const Block<T>& b : frame.blocks) {
      tracks_.emplace_back(b);
      residuals_.emplace_back(b);
      y_.emplace_back(b.dp);
      x_.emplace_back(b.mp);
      if (b.dp > dual_.size()) dual_ = Aligned<T>(b.dp);
      if (b.mp > dual_correlation_.size()) dual_correlation_ = Aligned<T>(b.mp);
    }
  }

  // y: frame.d values, rotated. Returns h_1 = ||A^T y||_1.
  template <class U>
  T start(const U* y) {
    T h1 = 0;
    for (std::size_t b = 0; b < tracks_.size(); ++b) {
      std::copy_n(y + frame_.row_start[b], frame_.blocks[b].d, y_[b].data());
      tracks_[b].piece.start(y_[b].data());
      h1 += tracks_[b].piece.h1;
    }
    return h1;
  }

  End<T> follow_to(T h, std::size_t max_steps) {
    End<T> end = follow(tracks_, h, max_steps, tracks_.size() > 1);
    if (end.reached || tracks_.size() == 1) return end;
    for (std::size_t b = 0; b < tracks_.size(); ++b) tracks_[b].piece.start(y_[b].data());
    return follow(tracks_, h, max_steps, false);
  }

  T t_of(std::size_t b, T t) const { return tracks_[b].done ? tracks_[b].t_done : t; }

  void form(T t) {
    for (std::size_t b = 0; b < tracks_.size(); ++b) representation(tracks_[b].piece, t_of(b, t), x_[b].data());
  }

  void form_residuals() {
    for (std::size_t b = 0; b < tracks_.size(); ++b) residuals_[b].form(frame_.blocks[b], y_[b].data(), x_[b].data());
  }

  // The largest violation of the optimality conditions by x, relative to h_1: c / h is a subgradient of ||.||_inf at x
  // iff ||c||_1 = h and <c, x> = h t. At h = 0 that says A x = y only, and a dual vector z shows that no smaller t will
  // do: t >= y.z / ||A^T z||_1 for any z, with equality at z = P w of the block that finished last.
  T certify(T h, T h1, T t) {
    form_residuals();
    T c_norm = 0, c_x = 0;
    for (const Residual<T>& residual : residuals_) {
      c_norm += residual.c_norm;
      c_x += residual.c_x;
    }
    T worst = std::max(std::abs(c_norm - h), c_norm - c_x / t) / h1;
    if (h == 0) worst = std::max(worst, dual_gap(t));
    return worst == worst ? worst : std::numeric_limits<T>::infinity();
  }

  // The same partition for another y of block b.
  template <class U>
  void replace_vector(std::size_t b, const U* y) {
    std::copy_n(y, frame_.blocks[b].d, y_[b].data());
    tracks_[b].piece.set_vector(y_[b].data());
  }

  std::vector<Track<Piece, T>>& tracks() { return tracks_; }
  const T* y(std::size_t b) const { return y_[b].data(); }
  T* x(std::size_t b) { return x_[b].data(); }
  const T* residual(std::size_t b) const { return residuals_[b].r.data(); }

 private:
  T dual_gap(T t) {
    std::size_t last = 0;
    for (std::size_t b = 1; b < tracks_.size(); ++b)
      if (t_of(b, t) > t_of(last, t)) last = b;
    const Block<T>& b = frame_.blocks[last];
    T *z = dual_.data(), *az = dual_correlation_.data();
    tracks_[last].piece.dual(z);
    combine<T>(az, nullptr, b.rows.data(), b.mp, z, b.d, b.mp);
    return 1 - dot(y_[last].data(), z, b.dp) / (t * absolute_sum(az, b.mp));
  }

  const Frame<T>& frame_;
  std::vector<Track<Piece, T>> tracks_;
  std::vector<Residual<T>> residuals_;
  std::vector<Aligned<T>> y_, x_;
  Aligned<T> dual_, dual_correlation_;
};

// Which follower found an answer, and holds its x.
enum class Way { fast, fast_double, sure };

struct Answer {
  Status status = Status::ok;
  Way way = Way::fast;
  bool zero = false;  // x = 0: the code is sign(A^T y)
  double t = 0, h = 0, certificate = 0;
  std::size_t steps = 0;
};

template <class T>
class Solver {
 public:
  Solver(const Frame<T>& frame, const Frame<double>& double_frame) : fast_(frame), double_frame_(double_frame) {}

  // h is a fraction of h_1, or in the units of the scaled problem.
  Answer solve(const T* y, double h, bool relative, std::size_t max_steps) {
    Answer answer;
    if (attempt(fast_, y, h, relative, max_steps, sizeof(T) == 4 ? 1e-4 : 1e-11, answer)) return answer;
    if constexpr (sizeof(T) == 4) {
      if (!fast_double_) fast_double_ = std::make_unique<Follower<GramSegment<double>, double>>(double_frame_);
      answer.way = Way::fast_double;
      if (attempt(*fast_double_, y, h, relative, max_steps, 1e-9, answer)) return answer;
    }
    return solve_surely(y, h, relative, max_steps);
  }

  // Block b of the last answer, in one of two types; for x = 0, of A^T y.
  template <class Visit>
  void visit(const Answer& answer, std::size_t b, Visit&& with) {
    if (answer.zero)
      with(fast_.tracks()[b].piece.nu.data());
    else if (answer.way == Way::fast)
      with(fast_.x(b));
    else
      with(answer.way == Way::sure ? sure_->x(b) : fast_double_->x(b));
  }

 private:
  // One pass of a follower. True where it succeeded: x = 0, or an x whose certificate is within the tolerance.
  template <class Piece, class U>
  static bool attempt(Follower<Piece, U>& follower, const T* y, double h, bool relative, std::size_t max_steps,
                      double tolerance, Answer& answer) {
    const U h1 = follower.start(y);
    const U target = relative ? static_cast<U>(h) * h1 : static_cast<U>(std::min<double>(h, h1));
    answer.h = relative ? h * h1 : h;
    answer.zero = !(target < h1);
    if (answer.zero) return true;
    const End<U> end = follower.follow_to(target, max_steps);
    if (!end.reached) return false;
    follower.form(end.t);
    answer.t = end.t;
    answer.steps = end.steps;
    answer.certificate = follower.certify(target, h1, end.t);
    // A small h must be met to a part of itself, too.
    if (target > 0) tolerance = std::min(tolerance, 1e-2 * static_cast<double>(target) / static_cast<double>(h1));
    return answer.certificate <= tolerance;
  }

  Answer solve_surely(const T* y, double h, bool relative, std::size_t max_steps) {
    if (!sure_) sure_ = std::make_unique<Follower<OrthogonalSegment, double>>(double_frame_);
    Answer answer;
    answer.way = Way::sure;
    // Exact ties can send the partition round in circles. A y moved by less than the tolerance has none; its last
    // partition is then solved for the true y, and the certificate judges.
    std::vector<double> start(double_frame_.d);
    for (double shift : {0.0, 1e-13, 1e-12, 1e-11}) {
      const double h1 = sure_->start(y);
      const double target = relative ? h * h1 : std::min(h, h1);
      if (!(target < h1)) {
        answer.zero = true;
        answer.h = relative ? h * h1 : h;
        return answer;
      }
      if (shift > 0) {
        move(y, shift * h1, start);
        sure_->start(start.data());
      }
      End<double> end = sure_->follow_to(target, max_steps);
      answer.status = end.limit ? Status::step_limit : Status::inaccurate;
      if (!end.reached) continue;
      if (shift > 0) end.t = settle(y, target, end.t);
      sure_->form(end.t);
      sure_->form_residuals();
      for (std::size_t b = 0; b < sure_->tracks().size(); ++b) {
        const double t = sure_->t_of(b, end.t);
        auto& piece = sure_->tracks()[b].piece;
        double* x = sure_->x(b);
        piece.refine(x, sure_->residual(b));
        for (std::size_t i = 0; i < piece.k; ++i) x[piece.free[i]] = std::min(std::max(x[piece.free[i]], -t), t);
      }
      answer.certificate = sure_->certify(target, h1, end.t);
      answer.t = end.t;
      answer.h = target;
      answer.steps = end.steps;
      if (answer.certificate <= 1e-9) {
        answer.status = Status::ok;
        return answer;
      }
    }
    return answer;
  }

  // y + delta with ||A^T delta||_1 <= size, the same at every call.
  void move(const T* y, double size, std::vector<double>& out) const {
    unsigned state = 1;
    for (std::size_t b = 0; b < double_frame_.blocks.size(); ++b) {
      const Block<double>& block = double_frame_.blocks[b];
      for (std::size_t i = 0; i < block.d; ++i) {
        state = state * 1664525u + 1013904223u;
        const double unit = static_cast<double>(state >> 8) / (1 << 24) - 0.5;
        const double row = absolute_sum(&block.rows[i * block.mp], block.mp);
        const std::size_t at = double_frame_.row_start[b] + i;
        out[at] =
            static_cast<double>(y[at]) + (row > 0 ? size * unit / (row * static_cast<double>(double_frame_.d)) : 0);
      }
    }
  }

  // The pieces as they are, for the true y: returns t.
  double settle(const T* y, double target, double t) {
    double eta = 0, upsilon = 0, latest = 0;
    for (std::size_t b = 0; b < sure_->tracks().size(); ++b) {
      auto& track = sure_->tracks()[b];
      sure_->replace_vector(b, y + double_frame_.row_start[b]);
      next_event<double>(track.piece, t);  // for eta and upsilon
      if (track.done) {
        if (track.piece.upsilon > 0) track.t_done = track.piece.eta / track.piece.upsilon;
        latest = std::max(latest, track.t_done);
      } else {
        eta += track.piece.eta;
        upsilon += track.piece.upsilon;
      }
    }
    return upsilon > 0 ? (eta - target) / upsilon : latest;
  }

  Follower<GramSegment<T>, T> fast_;
  const Frame<double>& double_frame_;
  std::unique_ptr<Follower<GramSegment<double>, double>> fast_double_;
  std::unique_ptr<Follower<OrthogonalSegment, double>> sure_;
};

}  // namespace antisparse::ANTISPARSE_ISA
