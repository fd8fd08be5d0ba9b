#pragma once

/// Attributes by which clang checks at compile time that a lock is held (-Wthread-safety): see
/// "Thread Safety Analysis" in clang's documentation. Other compilers see nothing of them. The
/// locks that carry them are in core/mutex.h.

#ifdef __clang__
#define SATRAP_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SATRAP_THREAD_ATTRIBUTE(x)
#endif

/// A member that is used only while the mutex is held.
#define SATRAP_GUARDED_BY(mutex) SATRAP_THREAD_ATTRIBUTE(guarded_by(mutex))

/// A function, or lambda, whose caller holds the mutex.
#define SATRAP_REQUIRES(...) SATRAP_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))

/// A function that takes the mutex and returns with it, or gives it back; without arguments it is
/// its object's.
#define SATRAP_ACQUIRE(...) SATRAP_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define SATRAP_ACQUIRE_SHARED(...) SATRAP_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define SATRAP_TRY_ACQUIRE(...) SATRAP_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define SATRAP_RELEASE(...) SATRAP_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define SATRAP_RELEASE_SHARED(...) SATRAP_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))

/// A function that says, and does not check, that the mutex is held: its caller knows another name
/// of it.
#define SATRAP_ASSERT_CAPABILITY(...) SATRAP_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))

/// A function that returns the mutex.
#define SATRAP_RETURN_CAPABILITY(mutex) SATRAP_THREAD_ATTRIBUTE(lock_returned(mutex))

/// A type of mutexes; a type whose objects hold one from constructor to destructor.
#define SATRAP_CAPABILITY(name) SATRAP_THREAD_ATTRIBUTE(capability(name))
#define SATRAP_SCOPED_CAPABILITY SATRAP_THREAD_ATTRIBUTE(scoped_lockable)
