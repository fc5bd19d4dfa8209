#include "machine/watch.hpp"

#include <atomic>

#include "bind/arrays.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace antisparse::bind {

namespace {

std::atomic<unsigned long> main_thread{0};

// Python handles signals on its main thread alone; other threads need not wait for the interpreter's lock here.
void handle_signals() {
  if (PyThread_get_thread_ident() != main_thread) return;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

void watch_signals() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
#ifndef _WIN32
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });  // the one that forked
#endif
  set_watch(handle_signals);
}

}  // namespace antisparse::bind
