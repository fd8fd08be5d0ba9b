#pragma once

// Gloo's installed headers transport/tcp/{pair,context,unbound_buffer}.h include this one, and its
// install rule omits it, in Debian's package as upstream: without it the classes that they declare
// cannot be used at all. satrap derives from two of them (src/net/gloo_mesh.cpp), as Gloo's own TLS
// transport does: the only way to protect a process from the reaction of Gloo's event thread to a
// broken peer without shipping a changed Gloo.
//
// This is not Gloo's text but an implementation of the three templates that those headers name,
// with the members that they use. It must agree with the one that libgloo.so was compiled with in
// name, in layout (one shared_ptr or weak_ptr each) and in meaning, because objects pass between
// Gloo's code and satrap's: the owner of a ShareableNonOwningPtr gives weak references to itself,
// and its destructor waits until no strong one is left. The static_asserts below check the layout,
// LinkTest.CaseJ_* the meaning. If Gloo does install its own, that one is used
// (cmake/Dependencies.cmake).

#include <memory>
#include <thread>

namespace gloo {

template <typename T>
class WeakNonOwningPtr;
template <typename T>
class ShareableNonOwningPtr;

template <typename T>
class NonOwningPtr final {
 public:
  NonOwningPtr() {}
  explicit NonOwningPtr(const WeakNonOwningPtr<T>& weak) : ptr_(weak.ptr_.lock()) {}

  T* operator->() const noexcept { return ptr_.get(); }
  explicit operator bool() const noexcept { return ptr_ != nullptr; }

 private:
  std::shared_ptr<T> ptr_;
};

template <typename T>
class WeakNonOwningPtr final {
 public:
  WeakNonOwningPtr() {}
  explicit WeakNonOwningPtr(const ShareableNonOwningPtr<T>& owner) : ptr_(owner.ptr_) {}

  // Whether it was ever made from an owner, alive or not.
  explicit operator bool() const noexcept {
    const std::weak_ptr<T> empty;
    return ptr_.owner_before(empty) || empty.owner_before(ptr_);
  }

 protected:
  std::weak_ptr<T> ptr_;

  friend class NonOwningPtr<T>;
};

template <typename T>
class ShareableNonOwningPtr final {
 public:
  explicit ShareableNonOwningPtr(T* owner) : ptr_(owner, [](void*) {}) {}
  ShareableNonOwningPtr(const ShareableNonOwningPtr&) = delete;
  ShareableNonOwningPtr& operator=(const ShareableNonOwningPtr&) = delete;
  ~ShareableNonOwningPtr() {
    const std::weak_ptr<T> weak(ptr_);
    ptr_.reset();
    while (!weak.expired()) std::this_thread::yield();
  }

 protected:
  std::shared_ptr<T> ptr_;

  friend class WeakNonOwningPtr<T>;
};

static_assert(sizeof(NonOwningPtr<int>) == sizeof(std::shared_ptr<int>));
static_assert(sizeof(WeakNonOwningPtr<int>) == sizeof(std::weak_ptr<int>));
static_assert(sizeof(ShareableNonOwningPtr<int>) == sizeof(std::shared_ptr<int>));

}  // namespace gloo
