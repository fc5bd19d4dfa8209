#include "machine/watch.hpp"

#include <chrono>

namespace antisparse {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t quantum = std::size_t{1} << 20;  // of work between two looks at the clock: about a millisecond
constexpr std::chrono::milliseconds interval{100};

std::atomic<void (*)()> current_watch{nullptr};

struct State {
  std::size_t left = quantum;
  const std::atomic<bool>* stop = nullptr;
  bool helps = false;
  Clock::time_point next{};  // when to ask again
};
thread_local State state;

void look() {
  state.left = quantum;
  if (state.stop && state.stop->load(std::memory_order_relaxed)) throw Stopped{};
  if (state.helps) return;
  const Clock::time_point now = Clock::now();
  if (now < state.next) return;
  state.next = now + interval;
  ask_watch();
}

}  // namespace

void set_watch(void (*watch)()) { current_watch = watch; }

void ask_watch() {
  if (void (*const watch)() = current_watch.load()) watch();
}

void tick(std::size_t work) {
  if (work < state.left)
    state.left -= work;
  else
    look();
}

Watched::Watched(const std::atomic<bool>& stop, bool helps) : stop_before_(state.stop), helps_before_(state.helps) {
  state.stop = &stop;
  state.helps = helps;
}

Watched::~Watched() {
  state.stop = stop_before_;
  state.helps = helps_before_;
}

}  // namespace antisparse
