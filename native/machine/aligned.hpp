// Zero-filled, 64-byte aligned arrays, and the padding that lets every loop run on whole vectors.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace antisparse {

constexpr std::size_t alignment = 64;

// The length of an array of T rounded up to a multiple of 64 bytes.
template <class T>
constexpr std::size_t padded(std::size_t n) {
  constexpr std::size_t lanes = alignment / sizeof(T);
  return (n + lanes - 1) / lanes * lanes;
}

template <class T>
class Aligned {
 public:
  Aligned() = default;
  explicit Aligned(std::size_t n) : size_(n) {
    if (n == 0) return;
    if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_alloc();
    data_ = static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{alignment}));
    std::memset(static_cast<void*>(data_), 0, n * sizeof(T));
  }
  Aligned(Aligned&& other) noexcept { swap(other); }
  Aligned& operator=(Aligned&& other) noexcept {
    Aligned(std::move(other)).swap(*this);
    return *this;
  }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  ~Aligned() {
    if (data_) ::operator delete(data_, std::align_val_t{alignment});
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  void swap(Aligned& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace antisparse
