#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

/// PTX, the assembly language that nvcc emits for kernels, as text that has been read. Names are
/// those of NVIDIA's "PTX ISA" manual.
namespace ptx {

enum class Opcode : std::uint8_t {
  kAbs,
  kAdd,
  kAnd,
  kBarWarp,
  kBfi,
  kBfind,
  kBra,
  kBrev,
  kCopysign,
  kCvt,
  kDiv,
  kFma,
  kLd,
  kMad,
  kMax,
  kMin,
  kMov,
  kMul,
  kNeg,
  kNot,
  kOr,
  kPopc,
  kPrmt,
  kRcp,
  kRedux,
  kRet,
  kSelp,
  kSetp,
  kShfl,
  kShl,
  kShr,
  kSqrt,
  kSt,
  kSub,
  kVote,
  kXor,
};

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kBf16,
  kF32,
};

int bytes_of(Type type);  // 4 for predicates
bool is_signed(Type type);

enum class Comparison : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Space : std::uint8_t { kGlobal, kShared, kParameter };

/// The modifier that says what an instruction computes: the half of a product, the rounding, the
/// result of a collective.
enum class Mode : std::uint8_t {
  kNone,
  kLo,
  kHi,
  kWide,
  kRn,
  kRzi,
  kShiftAmt,
  kBallot,
  kAny,
  kMin,
  kMax,
  kIdx,
  kUp,
};

struct Operand {
  enum class Kind : std::uint8_t {
    kImmediate,  // and the address of a shared array
    kRegister,
    kParameter,
    kThread,
    kBlock,
    kBlockSize,
    kGridSize,
  };
  Kind kind = Kind::kImmediate;
  int index = 0;            // of a register or parameter
  std::uint64_t value = 0;  // of an immediate; else what is added, as in [operand+value]
};

/// The operands of an instruction, at most five: the address and the four values of a vector's
/// store.
class Operands {
 public:
  void push_back(const Operand& operand) { items_.at(size_++) = operand; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Operand& operator[](std::size_t i) const { return items_[i]; }
  const Operand& back() const { return items_[size_ - 1]; }
  const Operand* begin() const { return items_.data(); }
  const Operand* end() const { return items_.data() + size_; }

 private:
  std::array<Operand, 5> items_{};
  std::size_t size_ = 0;
};

struct Instruction {
  Opcode opcode{};
  Type type = Type::kNone;
  Type source_type = Type::kNone;  // the second type, of cvt
  Comparison comparison{};
  Mode mode = Mode::kNone;
  Space space = Space::kGlobal;
  bool guard_is_negated = false;
  int guard = -1;   // register of the predicate
  int target = -1;  // of bra: an index into the code
  Operands destinations, sources;
};

/// Where an instruction stands, for messages.
struct Line {
  int number = 0;
  std::string text;
};

struct Kernel {
  std::string name;  // mangled, of the .entry
  std::string file;
  std::vector<int> parameter_bytes;
  std::vector<Instruction> code;
  std::vector<Line> lines;  // of the code
  int num_registers = 0;
};

/// Bytes [begin, begin + size) of an address space.
struct Range {
  std::uint64_t begin = 0, size = 0;
  std::uint64_t end() const { return begin + size; }
};

/// The kernels of several PTX files, and the shared arrays that each of their blocks has, by
/// address.
struct Module {
  std::map<std::string, Kernel> kernels;  // by canonical_name
  std::vector<Range> shared_arrays;
};

/// A mangled name without what compilers call anonymous namespaces, which nvcc and GCC name
/// differently.
std::string canonical_name(const std::string& mangled);

}  // namespace ptx
