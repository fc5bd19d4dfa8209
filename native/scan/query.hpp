// A query on its way through blocks of codes: its limits, and what passes them.
#pragma once

#include <array>
#include <cmath>

#include "scan/best.hpp"
#include "scan/exact_sums.hpp"
#include "scan/fine.hpp"
#include "scan/passing.hpp"
#include "scan/quantised.hpp"
#include "scan/select.hpp"

namespace antisparse::ANTISPARSE_ISA {

// Memory that is wanted soon.
inline void ask_for(const void* address) {
#ifdef __GNUC__
  __builtin_prefetch(address);
#endif
}

// A stretch of the blocks of a cell (or probe).
struct Stretch {
  std::size_t cell, first_block, count;
};

// Codes that passed, as places after a first one, with their sums and scores.
struct Hits {
  static constexpr std::size_t enough = 256;
  std::array<std::uint32_t, enough + 64> places;
  std::array<double, enough + 64> sums, scores;
  std::size_t count = 0;
};

// Memory that a query needs for no longer than a call: all queries of a thread share it.
struct Scratch {
  Hits hits;
  std::vector<Candidate> spare;
  std::vector<std::uint32_t> passed;
  std::vector<Stretch> gathered;
  std::vector<std::uint32_t> chosen;
  std::vector<float> values, folded;  // the former of the blocks gathered
};

class ScanQuery {
 public:
  ScanQuery(const ScanJob& job, Scratch& scratch)
      : best(job.k, scratch.spare),
        job_(job),
        codes_(job.codes),
        exact_(job.codes, job.queries, job.linear),
        fine_(job.codes.nibbles()),
        hits_(scratch.hits),
        passed_(scratch.passed),
        gathered_(scratch.gathered),
        chosen_(scratch.chosen),
        values_(scratch.values),
        folded_(scratch.folded),
        tables_(job) {}

  void start(std::size_t query) {
    const Queries& queries = job_.queries;
    best.clear();
    seen = 0;
    query_ = query;
    cell_ = 0;
    unit_ = queries.units[query];
    base_ = queries.base ? queries.base[query] : 0;
    exact_.start(query);
    built_ = prefer_wide_ = fine_built_ = whole_ = false;
    offsets_ = queries.offsets + query * queries.visited;
    least_offset_ = *std::min_element(offsets_, offsets_ + queries.visited);
    int exponent = 0;
    const bool exact = std::frexp(unit_, &exponent) == 0.5 && std::abs(exponent) < 900;
    strict_ = exact && !codes_.ids && !codes_.column() && *offsets_ == 0;
  }

  // Takes a score for a limit that k codes of the blocks [first, end) are very likely below, by a sample of them: some
  // blocks, far apart, by fine sums. With few codes, or where fine sums do not fit, there is none.
  void guess(std::size_t first, std::size_t end) {
    const std::size_t blocks = end - first;
    whole_ = together_cheap && job_.k * whole_share > blocks * scan_block && by_fine();
    // A larger sample costs more, and a smaller one lets more codes pass.
    const auto balanced = static_cast<std::size_t>(std::sqrt(static_cast<double>(job_.k * blocks)) / 8);
    const std::size_t sample = std::min(std::clamp<std::size_t>(balanced, 32, 1024), blocks / 8);
    if (sample < 4 || job_.k > blocks * scan_block / 4) return;
    std::size_t cell = 0;
    for (std::size_t i = 0; i < sample; ++i) {
      const std::size_t block = first + (2 * i + 1) * blocks / (2 * sample);
      while (static_cast<std::size_t>(codes_.cell_ends[cell]) <= block) ++cell;
      gather(cell, block, 1);
    }
    if (valued_ == sample) {
      if (codes_.ids)
        for_gathered_blocks([&](std::size_t b, std::size_t block) { leave_out(block, &values_[b * scan_block]); });
      // As many of the k are expected in the sample, and hardly ever more than `rank`.
      const double mean = static_cast<double>(job_.k * sample) / static_cast<double>(blocks);
      const auto rank = std::min(job_.k, static_cast<std::size_t>(mean + 2.5 * std::sqrt(mean) + 3));
      const double score = bound_kth_least(values_.data(), valued_ * scan_block, rank, folded_) + width_;
      if (score < infinity_) best.assume(score);
    }
    forget_gathered();
  }

  // Ready for the next chunk, of the cell (or probe) given: the limit that the best so far set, and tables fit to tell
  // codes apart near it. False where no code of the cell can be among the best.
  bool prepare(std::size_t cell) {
    enter(cell);
    if (whole_) return true;
    const double score = best.bound();
    open_ = score == infinity_;
    if (open_) return true;
    const double most = most_sum(score - least_offset_);
    if (!built_ || most < 0.85 * built_for_) build(most);
    limit = {};
    limit.flat = limit.base = most_wide;  // everything passes, unless something better is known
    if (codes_.column())
      limit_by_column(score);
    else if (!limit_flat(score))
      return false;
    if (!tables_.wide()) limit.flat = std::min(limit.flat, 255.0f);
    return true;
  }

  // The codes that passed, scored exactly: found first, then scored, then offered, so that none waits for another's.
  void collect(std::size_t first_block, std::size_t count, const std::uint32_t* masks) {
    std::size_t missed = 0;
    if (passed_.size() < count + 16) passed_.resize(count + 16);
    const std::size_t passed = blocks_that_passed(masks, count, passed_.data());
    for (std::size_t p = 0; p < passed; ++p) {
      const std::uint32_t b = passed_[p];
      std::uint32_t mask = masks[b];
      mask &= within(first_block + b);
      // All of a block by fine sums cost as much as a few of them one by one.
      const int several = set_bits(mask);
      if (!together_cheap && !open_ && several > 4 && by_fine()) {
        float values[scan_block];
        least_scores(first_block + b, values);
        mask &= at_most(values, static_cast<float>(best.bound() + rounding_));
        missed += static_cast<std::size_t>(several - set_bits(mask));
      }
      hits_.count += places_that_passed(mask, b * scan_block, &hits_.places[hits_.count]);
      if (hits_.count >= Hits::enough) missed += score_hits(first_block * scan_block);
    }
    missed += score_hits(first_block * scan_block);
    // Passed in vain too often for narrow sums to be worth their speed.
    if (!open_ && !tables_.wide() && count >= 32 && missed * 48 > count * scan_block) {
      prefer_wide_ = true;
      built_ = false;
    }
  }

  // Where so many codes would pass that they are all scored.
  void collect_whole(std::size_t first_block, std::size_t count) {
    tick(16 * count * codes_.bytes);
    for (std::size_t b = 0; b < count; ++b) {
      block_sums(exact_, codes_, first_block + b, &hits_.sums[hits_.count]);
      const std::uint32_t mask = within(first_block + b);
      hits_.count += places_that_passed(mask, static_cast<std::uint32_t>(b * scan_block), &hits_.places[hits_.count]);
      if (hits_.count >= Hits::enough) offer_hits(first_block * scan_block);
    }
    offer_hits(first_block * scan_block);
  }

  // The first codes, where there is no limit yet: gathered with no more than their scores, by fine sums, ...
  void gather(std::size_t cell, std::size_t first_block, std::size_t count) {
    tick(16 * count * codes_.bytes);
    enter(cell);
    gathered_.push_back({cell, first_block, count});
    chosen_.resize(chosen_.size() + count, ~std::uint32_t{0});
    if (!by_fine()) return;
    if (values_.size() < chosen_.size() * scan_block) values_.resize(chosen_.size() * scan_block);
    float* values = &values_[valued_ * scan_block];
    for (std::size_t b = 0; b < count; ++b) least_scores(first_block + b, values + b * scan_block);
    valued_ += count;
    width_ = std::max(width_, rounded_off_);
  }

  // ... and collected: those that may be among the k best of them.
  void collect_gathered() {
    choose_gathered();
    if (codes_.ids && !all_are_codes()) {  // then these count for nothing
      for_gathered_blocks([&](std::size_t b, std::size_t block) { leave_out(block, &values_[b * scan_block]); });
      choose_gathered();
    }
    const std::uint32_t* masks = chosen_.data();
    for (const Stretch& stretch : gathered_) {
      enter(stretch.cell);
      collect(stretch.first_block, stretch.count, masks);
      masks += stretch.count;
    }
    forget_gathered();
  }

  std::size_t number() const { return query_; }

  std::size_t cell() const { return cell_; }
  bool whole() const { return whole_; }  // all codes are scored
  bool open() const { return open_; }    // there is no limit yet
  bool wide() const { return tables_.wide(); }
  Quantised tables() const { return tables_.get(); }

  Best best;
  Limit limit;
  std::size_t seen = 0;  // blocks

 private:
  static constexpr double infinity_ = std::numeric_limits<double>::infinity();

  // Codes are all scored where the k best are more than one in so many.
  static constexpr std::size_t whole_share = 16;

  // The places of a block that the codes reach.
  std::uint32_t within(std::size_t block) const {
    const std::size_t start = block * scan_block;
    return start + scan_block > codes_.places ? (std::uint32_t{1} << (codes_.places - start)) - 1 : ~std::uint32_t{0};
  }

  // One limit for all codes of the cell. False where none can be among the best.
  bool limit_flat(double score) {
    // Where ids ascend with the place and scores are exact, a code that ties with the worst is too late. Elsewhere ties
    // count, and so does rounding: of the score, of its difference to the offset, and of D times the unit, which may be
    // subnormal and then moves D by no more than 1.
    const double bound = score - offset_;
    double d = bound / unit_ - 1;
    if (!strict_) {
      d = (bound + 1e-15 * (std::abs(score) + std::abs(offset_))) / unit_ + 1;
      if (d < 0) return false;
    }
    // Rounded up by more than a float is rounded.
    const double steps = (1 + 2e-7) * std::max(d / tables_.step(), 0.0);
    limit.flat = static_cast<float>(std::min(steps, static_cast<double>(most_wide)));
    return true;
  }

  // A limit for each code: D <= ((score - offset) / s_i - base) / unit, in steps. It is formed in float, from 1 / s_i:
  // not where anything could leave its range, and with room for rounding, which is a few units of 2^-24 of the two
  // addends (and of double, far less). Where s_i times the inner value may be subnormal, its rounding could move D by
  // 2^-1074 / (s_i unit), with s_i > 2^-127: no limit for units so small that this is more than a thousandth, nor
  // for such that the product with the step may overflow.
  void limit_by_column(double score) {
    const double per = 1 / (unit_ * tables_.step());
    const double slope = (score - offset_) * per, base = -base_ * per;
    const double size = (std::abs(score) + std::abs(offset_)) * per * codes_.most_inverse;
    const double room = 1e-6 * (size + std::abs(base)) + 1e-3;
    const bool fits = std::max({size, std::abs(slope), std::abs(base)}) < 1e30;  // false where it is NaN
    if (!fits || (slope != 0 && !(std::abs(slope) > 1e-30)) || !(unit_ > 1e-270 && unit_ < 1e270)) return;
    if (codes_.inverse_bytes) {
      limit.slope = static_cast<float>(slope * codes_.inverse_step);
      limit.base = static_cast<float>(base + slope * codes_.inverse_low + room);
    } else {
      limit.slope = static_cast<float>(slope);
      limit.base = static_cast<float>(base + room);
    }
    limit.clamp = codes_.unlimited || !(size + std::abs(base) < 1e9);
  }

  void forget_gathered() {
    gathered_.clear();
    chosen_.clear();
    valued_ = 0;
    width_ = 0;
  }

  void choose_gathered() {
    if (valued_ < chosen_.size()) return;
    const float kth = bound_kth_least(values_.data(), valued_ * scan_block, job_.k, folded_);
    const auto most = static_cast<float>(kth + width_);
    for (std::size_t b = 0; b < valued_; ++b) chosen_[b] = at_most(&values_[b * scan_block], most);
  }

  // Whether there is a code at all places chosen, which are few: there is none where it was deleted or filtered out.
  bool all_are_codes() const {
    if (valued_ < chosen_.size()) return true;
    bool codes = true;
    for_gathered_blocks([&](std::size_t b, std::size_t block) {
      if (chosen_[b]) codes &= !(chosen_[b] & ~codes_.ids.held(block));
    });
    return codes;
  }

  template <class Do>
  void for_gathered_blocks(const Do& todo) const {
    std::size_t b = 0;
    for (const Stretch& stretch : gathered_)
      for (std::size_t i = 0; i < stretch.count; ++i) todo(b++, stretch.first_block + i);
  }

  // Places without a code are never chosen.
  void leave_out(std::size_t block, float* values) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::uint32_t held = codes_.ids.held(block);
    if (held == ~std::uint32_t{0}) return;
    for (std::size_t i = 0; i < scan_block; ++i) values[i] = held >> i & 1 ? values[i] : infinity;
  }

  // Scores and offers the codes found, whose places are after `first`; returns how many of them were too far.
  std::size_t score_hits(std::size_t first) {
    const std::uint32_t* places = hits_.places.data();
    for (std::size_t h = 0; codes_.ids && h < hits_.count; ++h) ask_for(codes_.ids.near(first + places[h]));
    exact_sums(exact_, codes_, first, places, hits_.count, hits_.sums.data());
    return offer_hits(first);
  }

  // The same where their sums are known.
  std::size_t offer_hits(std::size_t first) {
    const std::size_t count = hits_.count;
    hits_.count = 0;
    const std::uint32_t* places = hits_.places.data();
    exact_.scores(first, places, hits_.sums.data(), count, unit_, offset_, base_, hits_.scores.data());
    std::size_t near = 0;
    for (std::size_t h = 0; h < count; ++h) {
      hits_.places[near] = places[h];
      hits_.scores[near] = hits_.scores[h];
      near += best.admits(hits_.scores[h]);
    }
    for (std::size_t h = 0; h < near; ++h) {
      const std::int64_t id = codes_.ids.at(first + places[h]);
      if (id >= 0) best.offer({hits_.scores[h], id});
    }
    return count - near;
  }

  void enter(std::size_t cell) {
    const Queries& queries = job_.queries;
    offset_ = offsets_[cell];
    if (queries.cell_steps && cell != cell_) {
      exact_.visit(cell);
      fine_built_ = false;
      if (built_) tables_.build_last(exact_);
    }
    cell_ = cell;
    const std::size_t number =
        queries.probes ? static_cast<std::size_t>(queries.probes[query_ * queries.visited + cell]) : cell;
    last_block_ = static_cast<std::size_t>(codes_.cell_ends[number]) - 1;
  }

  // Whether fine sums can be used, whose tables are then ready.
  bool by_fine() {
    if (!FineTables::fit(exact_) || codes_.unlimited) return false;
    if (!fine_built_) fine_.build(exact_);
    fine_built_ = true;
    const double inverse = codes_.column() ? codes_.least_inverse : 1;
    const double inner = std::abs(base_) + unit_ * static_cast<double>(exact_.most());
    const double largest = std::abs(offset_) + inner / inverse;
    fine_slope_ = static_cast<float>(unit_ * fine_.step());
    fine_base_ = static_cast<float>(codes_.column() ? base_ : offset_);
    rounding_ = 1e-6 * largest;
    rounded_off_ = fine_.slack() * unit_ * fine_.step() / inverse + 2 * rounding_;
    return std::min(inner, largest) > 1e-30 && std::max(inner, largest) < 1e30;  // not where float leaves its range
  }

  // For the codes of a block no more than their score, but for rounding; infinity for those that cannot be found.
  void least_scores(std::size_t block, float* out) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const std::size_t start = block * scan_block;
    float sums[scan_block];
    fine_.sums(job_, block, sums);
    for (std::size_t i = 0; i < scan_block; ++i) out[i] = fine_base_ + fine_slope_ * sums[i];
    if (codes_.column()) multiply(start, out);
    if (codes_.ids && block == last_block_) leave_out(block, out);  // which has padding
    for (std::size_t i = codes_.places - start; i < scan_block; ++i) out[i] = infinity;
  }

  // offset + s_i * (base + unit * D), from the last factor.
  void multiply(std::size_t start, float* out) const {
    const auto offset = static_cast<float>(offset_);
    if (codes_.inverse_bytes) {
      const auto step = static_cast<float>(codes_.inverse_step), low = static_cast<float>(codes_.inverse_low);
      for (std::size_t i = start; i < start + scan_block; ++i, ++out)
        *out = offset + *out / (low + step * codes_.inverse_bytes[i]);
    } else {
      for (std::size_t i = start; i < start + scan_block; ++i, ++out) *out = offset + *out / codes_.inverse[i];
    }
  }

  void build(double most) {
    // Each of many narrow entries loses half a step on average: too much, once it comes to a seventh of the bound.
    const bool coarse = most > 254 && exact_.nibbles() > 48;
    tables_.build(exact_, most, prefer_wide_ || coarse);
    built_for_ = most;
    built_ = true;
  }

  // About the largest D of a code whose score, less its offset, is at most `bound`.
  double most_sum(double bound) const {
    const double room = bound / unit_, most = static_cast<double>(exact_.most());
    if (!codes_.column()) return std::min(std::max(room, 1.0), most);
    const double d = room * (room > 0 ? codes_.most_inverse : codes_.least_inverse) - base_ / unit_;
    return std::min(std::max(1.0, d), most);  // 1 where it is NaN
  }

  const ScanJob& job_;
  const Codes& codes_;
  std::size_t query_ = 0, cell_ = 0;  // the cell (or probe) that the tables are for
  std::size_t last_block_ = 0;        // of that cell
  double unit_ = 1, base_ = 0;
  const double* offsets_ = nullptr;  // by cell (or probe)
  double least_offset_ = 0, offset_ = 0;
  bool strict_ = false;  // a code that ties with the worst is too late
  ExactTables exact_;
  FineTables fine_;
  float fine_slope_ = 0, fine_base_ = 0;   // of least scores in fine sums
  double rounding_ = 0, rounded_off_ = 0;  // of least scores in float; how much less they are than scores
  Hits& hits_;                             // see Scratch
  std::vector<std::uint32_t>& passed_;
  std::vector<Stretch>& gathered_;
  std::vector<std::uint32_t>& chosen_;
  std::vector<float>&values_, &folded_;
  std::size_t valued_ = 0;  // blocks that have values
  double width_ = 0;        // the most that was rounded off of those
  Tables tables_;
  double built_for_ = 0;
  bool built_ = false, prefer_wide_ = false, fine_built_ = false, open_ = true;
  bool whole_ = false;
};

}  // namespace antisparse::ANTISPARSE_ISA
