// Calls that take long can be stopped: kernels count their work, and now and then the thread that called is asked.
// Results do not depend on it.
#pragma once

#include <atomic>
#include <cstddef>

namespace antisparse {

// Thrown in the threads of a call that has failed, or was stopped, in another one.
struct Stopped {};

// What to ask, some ten times a second, on the thread that made a call: it throws where the call shall end.
void set_watch(void (*watch)());
void ask_watch();

// So much work was done, a unit being about a multiply-add. Throws where the call shall end.
void tick(std::size_t work);

// For its lifetime, ticks of this thread look at a call's `stop`; those of threads that help ask nobody.
class Watched {
 public:
  Watched(const std::atomic<bool>& stop, bool helps);
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched();

 private:
  const std::atomic<bool>* stop_before_;
  bool helps_before_;
};

}  // namespace antisparse
