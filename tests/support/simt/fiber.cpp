#include "tests/support/simt/fiber.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// System V x86-64: a call must preserve only six registers and the stack pointer. This takes a
// seventh of the time of swapcontext, which spends most of its own on the signal mask.
#if !defined(__x86_64__)
#include <ucontext.h>
#else
extern "C" void simt_switch(void** save, void* load);
asm(R"(.text
.globl simt_switch
.type simt_switch,@function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch,.-simt_switch
)");
#endif

namespace simt {

namespace {
// Room for kernels built without optimisation and with a sanitizer's red zones.
constexpr std::size_t kStackBytes = 128U << 10;
}  // namespace

struct Fiber::Context {
  void (*function)() = nullptr;
  std::unique_ptr<char[]> stack;
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t ucontext;
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  std::size_t size = 0;
  void* fake_stack = nullptr;
#endif
};

namespace {
#if defined(__SANITIZE_ADDRESS__)
// The origin of the running switch: AddressSanitizer reports its stack on arrival.
thread_local const void** arriving_bottom = nullptr;
thread_local std::size_t* arriving_size = nullptr;

void arrive(void* fake_stack) {
  __sanitizer_finish_switch_fiber(fake_stack, arriving_bottom, arriving_size);
}
#else
void arrive(void* /*fake_stack*/) {}
#endif

thread_local void (*starting)() = nullptr;

void trampoline() {
  arrive(nullptr);
  starting();
  std::abort();  // fibers never end
}
}  // namespace

Fiber::Fiber() : context_(std::make_unique<Context>()) {}

Fiber::Fiber(void (*function)()) : context_(std::make_unique<Context>()) {
  context_->function = function;
  context_->stack.reset(new char[kStackBytes]);
#if defined(__SANITIZE_ADDRESS__)
  context_->bottom = context_->stack.get();
  context_->size = kStackBytes;
#endif
  restart();
}

Fiber::~Fiber() = default;

void Fiber::restart() {
#if defined(__SANITIZE_ADDRESS__)
  // The abandoned frames left their red zones.
  __asan_unpoison_memory_region(context_->stack.get(), kStackBytes);
  context_->fake_stack = nullptr;
#endif
#if defined(__x86_64__)
  const auto end = reinterpret_cast<std::uintptr_t>(context_->stack.get() + kStackBytes);
  auto* top = reinterpret_cast<std::uintptr_t*>(end & ~std::uintptr_t{15});
  *--top = 0;  // in place of a return address: the callee's stack is aligned
  *--top = reinterpret_cast<std::uintptr_t>(&trampoline);
  for (int i = 0; i < 6; ++i) *--top = 0;
  context_->stack_pointer = top;
#else
  getcontext(&context_->ucontext);
  context_->ucontext.uc_stack.ss_sp = context_->stack.get();
  context_->ucontext.uc_stack.ss_size = kStackBytes;
  context_->ucontext.uc_link = nullptr;
  makecontext(&context_->ucontext, trampoline, 0);
#endif
}

void Fiber::switch_between(Fiber& from, Fiber& to) {
  Context& a = *from.context_;
  Context& b = *to.context_;
  starting = b.function;
#if defined(__SANITIZE_ADDRESS__)
  arriving_bottom = &a.bottom;
  arriving_size = &a.size;
  __sanitizer_start_switch_fiber(&a.fake_stack, b.bottom, b.size);
#endif
#if defined(__x86_64__)
  simt_switch(&a.stack_pointer, b.stack_pointer);
#else
  swapcontext(&a.ucontext, &b.ucontext);
#endif
#if defined(__SANITIZE_ADDRESS__)
  arrive(a.fake_stack);
#endif
}

}  // namespace simt
