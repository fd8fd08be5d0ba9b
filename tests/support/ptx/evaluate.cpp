#include "tests/support/ptx/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace ptx {
namespace {

using std::int64_t;
using std::uint64_t;

constexpr uint64_t kSign = 0x80000000U;
constexpr uint64_t kNan = 0x7FFFFFFFU;

float to_float(uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
uint64_t to_bits(float value) {
  return std::isnan(value) ? kNan : std::bit_cast<std::uint32_t>(value);
}
int64_t to_signed(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t to_unsigned(int64_t value) { return static_cast<uint64_t>(value); }

bool is_integer(Type type) { return type >= Type::kU8 && type <= Type::kS64; }
bool is_untyped(Type type) { return type >= Type::kB8 && type <= Type::kB64; }
uint64_t bits_of(Type type) { return 8 * static_cast<uint64_t>(bytes_of(type)); }

float from_half(uint64_t half) {
  const float sign = (half & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = static_cast<int>(half >> 10 & 31U);
  const auto mantissa = static_cast<float>(half & 1023U);
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024.0F + mantissa, exponent - 25);
}

/// Rounds to the nearest, ties to even; `to_infinity` is the first magnitude that rounds to
/// infinity.
struct SmallFloat {
  int mantissa_bits, least_exponent;
  double to_infinity;
  uint64_t infinity;

  uint64_t round(float value) const {
    if (std::isnan(value)) return 0x7FFF;
    const uint64_t sign = std::signbit(value) ? 0x8000U : 0;
    const double magnitude = std::fabs(static_cast<double>(value));
    if (magnitude >= to_infinity) return sign | infinity;
    if (magnitude == 0.0) return sign;
    const int exponent = std::max(std::ilogb(magnitude), least_exponent);
    const auto quanta =
        static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent)));
    // A subnormal has no implicit one, and a carry into the exponent is the right result.
    const uint64_t biased = static_cast<uint64_t>(exponent - least_exponent) << mantissa_bits;
    return sign | (biased + quanta);
  }
};
constexpr SmallFloat kF16{10, -14, 65520.0, 0x7C00};
const SmallFloat kBf16{7, -126, std::ldexp(511.0, 119), 0x7F80};

uint64_t convert(Type to, Type from, uint64_t value) {
  if (to == Type::kF16) return kF16.round(to_float(value));
  if (to == Type::kBf16) return kBf16.round(to_float(value));
  if (to == Type::kF32) {
    if (from == Type::kF16) return to_bits(from_half(value & 0xFFFFU));
    if (is_signed(from)) return to_bits(static_cast<float>(to_signed(truncate(value, from))));
    return to_bits(static_cast<float>(truncate(value, from)));
  }
  if (from == Type::kF32) {  // to u32, towards zero, into its range
    const float x = to_float(value);
    if (!(x > 0.0F)) return 0;
    return x >= 4294967296.0F ? 0xFFFFFFFFU : static_cast<std::uint32_t>(x);
  }
  return truncate(truncate(value, from), to);
}

bool is_defined_conversion(Type to, Type from, Mode mode) {
  if (to == Type::kF16 || to == Type::kBf16) return from == Type::kF32 && mode == Mode::kRn;
  if (to == Type::kF32) {
    return from == Type::kF16 ? mode == Mode::kNone : is_integer(from) && mode == Mode::kRn;
  }
  if (from == Type::kF32) return to == Type::kU32 && mode == Mode::kRzi;
  return is_integer(to) && is_integer(from) && mode == Mode::kNone;
}

template <class T>
bool compare(Comparison comparison, T a, T b) {
  switch (comparison) {
    case Comparison::kEq:
      return a == b;
    case Comparison::kNe:
      return a < b || a > b;  // false if either is NaN
    case Comparison::kLt:
      return a < b;
    case Comparison::kLe:
      return a <= b;
    case Comparison::kGt:
      return a > b;
    case Comparison::kGe:
      return a >= b;
  }
  return false;
}

bool compare(const Instruction& i, uint64_t a, uint64_t b) {
  if (i.type == Type::kF32) return compare(i.comparison, to_float(a), to_float(b));
  a = truncate(a, i.type);
  b = truncate(b, i.type);
  return is_signed(i.type) ? compare(i.comparison, to_signed(a), to_signed(b))
                           : compare(i.comparison, a, b);
}

uint64_t multiply(const Instruction& i, uint64_t a, uint64_t b) {
  const bool with_sign = is_signed(i.type);
  a = truncate(a, i.type);
  b = truncate(b, i.type);
  if (i.mode == Mode::kLo) return truncate(a * b, i.type);
  if (i.mode == Mode::kWide) return a * b;  // of 32 bits, which 64 hold with their sign
  if (!with_sign) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return truncate(static_cast<uint64_t>(product >> bits_of(i.type)), i.type);
  }
  const auto product = static_cast<__int128>(to_signed(a)) * to_signed(b);
  return truncate(static_cast<uint64_t>(product >> bits_of(i.type)), i.type);
}

uint64_t divide(Type type, uint64_t a, uint64_t b) {
  if (type == Type::kF32) return to_bits(to_float(a) / to_float(b));
  a = truncate(a, type);
  b = truncate(b, type);
  if (b == 0) return truncate(~uint64_t{0}, type);
  if (!is_signed(type)) return a / b;
  if (to_signed(b) == -1) return truncate(0 - a, type);
  return truncate(to_unsigned(to_signed(a) / to_signed(b)), type);
}

/// Amounts beyond the width give what shifting bit by bit would.
uint64_t shift_right(Type type, uint64_t value, uint64_t amount) {
  value = truncate(value, type);
  if (is_signed(type)) {
    return to_unsigned(to_signed(value) >> std::min(amount, bits_of(type) - 1));
  }
  return amount >= bits_of(type) ? 0 : value >> amount;
}

/// Four bytes out of eight, those of b above those of a: each of the selector's low four digits
/// names one; if the digit's highest bit is set, the byte's sign fills it.
uint64_t permute(uint64_t a, uint64_t b, uint64_t selector) {
  const uint64_t bytes = (a & 0xFFFFFFFFU) | b << 32;
  uint64_t result = 0;
  for (uint64_t n = 0; n < 4; ++n) {
    const uint64_t digit = selector >> 4 * n & 15U;
    uint64_t byte = bytes >> 8 * (digit & 7U) & 0xFFU;
    if ((digit & 8U) != 0) byte = (byte & 0x80U) != 0 ? 0xFFU : 0;
    result |= byte << 8 * n;
  }
  return result;
}

/// b with the lowest `length` bits of a in place of those from `position` on. Of the last two, the
/// lowest 8 bits count.
uint64_t insert_bits(uint64_t a, uint64_t b, uint64_t position, uint64_t length) {
  position &= 0xFFU;
  length &= 0xFFU;
  if (position >= 32) return b & 0xFFFFFFFFU;
  const uint64_t field = length >= 32 ? 0xFFFFFFFFU : (uint64_t{1} << length) - 1;
  return ((b & ~(field << position)) | (a & field) << position) & 0xFFFFFFFFU;
}

uint64_t reverse_bits(uint64_t value) {
  uint64_t reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (value >> bit & 1U) << (31 - bit);
  return reversed;
}

/// The opcodes whose forms differ only by type.
bool is_defined_for(Opcode opcode, Type t) {
  const bool is_float = t == Type::kF32;
  switch (opcode) {
    case Opcode::kAbs:
    case Opcode::kCopysign:
      return is_float;
    case Opcode::kNeg:
      return is_float || is_signed(t);
    case Opcode::kMin:
    case Opcode::kMax:
      return is_integer(t);
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
      return is_untyped(t) || t == Type::kPred;
    case Opcode::kShl:
      return is_untyped(t);
    case Opcode::kShr:
      return is_untyped(t) || is_integer(t);
    case Opcode::kSetp:
    case Opcode::kSelp:
    case Opcode::kMov:
      return is_untyped(t) || is_integer(t) || is_float || t == Type::kPred;
    case Opcode::kLd:
    case Opcode::kSt:
      return is_untyped(t) || is_integer(t) || is_float;
    case Opcode::kBfi:
    case Opcode::kBrev:
    case Opcode::kPopc:
    case Opcode::kPrmt:
      return t == Type::kB32;
    case Opcode::kBarWarp:
    case Opcode::kBra:
    case Opcode::kRet:
      return t == Type::kNone;
    default:
      return false;
  }
}

}  // namespace

int bytes_of(Type type) {
  //                             none pred b8 .. b64   u8 .. u64   s8 .. s64   f16 bf16 f32
  static constexpr int kBytes[] = {4, 4, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4};
  static_assert(std::size(kBytes) == static_cast<std::size_t>(Type::kF32) + 1);
  return kBytes[static_cast<std::size_t>(type)];
}

bool is_signed(Type type) { return type >= Type::kS8 && type <= Type::kS64; }

bool is_collective(Opcode opcode) {
  return opcode == Opcode::kBarWarp || opcode == Opcode::kShfl || opcode == Opcode::kVote ||
         opcode == Opcode::kRedux;
}

uint64_t truncate(uint64_t value, Type type) {
  if (type == Type::kPred) return value & 1U;
  const uint64_t unused = 64 - bits_of(type);
  return is_signed(type) ? to_unsigned(to_signed(value << unused) >> unused)
                         : value << unused >> unused;
}

bool is_defined(const Instruction& i) {
  const Type t = i.type;
  const bool is_float = t == Type::kF32;
  const bool has_no_mode = i.mode == Mode::kNone;
  switch (i.opcode) {
    case Opcode::kAdd:
    case Opcode::kSub:
      return is_float ? has_no_mode || i.mode == Mode::kRn : is_integer(t) && has_no_mode;
    case Opcode::kMul:
      if (is_float) return has_no_mode || i.mode == Mode::kRn;
      if (i.mode == Mode::kWide) return t == Type::kU32 || t == Type::kS32;
      return is_integer(t) && (i.mode == Mode::kLo || i.mode == Mode::kHi);
    case Opcode::kMad:
      return is_integer(t) && i.mode == Mode::kLo;
    case Opcode::kFma:
    case Opcode::kRcp:
    case Opcode::kSqrt:
      return is_float && i.mode == Mode::kRn;
    case Opcode::kDiv:
      return is_float ? i.mode == Mode::kRn : is_integer(t) && has_no_mode;
    case Opcode::kCvt:
      return is_defined_conversion(t, i.source_type, i.mode);
    case Opcode::kBfind:
      return t == Type::kU32 && i.mode == Mode::kShiftAmt;
    case Opcode::kShfl:
      return t == Type::kB32 && (i.mode == Mode::kIdx || i.mode == Mode::kUp);
    case Opcode::kVote:
      return (i.mode == Mode::kBallot && t == Type::kB32) ||
             (i.mode == Mode::kAny && t == Type::kPred);
    case Opcode::kRedux:
      return (i.mode == Mode::kMin || i.mode == Mode::kMax) && t == Type::kU32;
    default:
      return has_no_mode && is_defined_for(i.opcode, t);
  }
}

bool has_its_operands(const Instruction& i) {
  const std::size_t destinations = i.destinations.size(), sources = i.sources.size();
  switch (i.opcode) {
    case Opcode::kLd:
      return (destinations == 1 || destinations == 2 || destinations == 4) && sources == 1;
    case Opcode::kSt:
      return destinations == 0 && (sources == 2 || sources == 3 || sources == 5);
    case Opcode::kMov:  // of a whole register, or of its halves on one side
      return destinations + sources == 2 || (destinations + sources == 3 && sources > 0);
    case Opcode::kBarWarp:
      return destinations == 0 && sources == 1;
    case Opcode::kShfl:
      return destinations == 2 && sources == 4;
    case Opcode::kBfi:
      return destinations == 1 && sources == 4;
    case Opcode::kFma:
    case Opcode::kMad:
    case Opcode::kPrmt:
    case Opcode::kSelp:
      return destinations == 1 && sources == 3;
    case Opcode::kAbs:
    case Opcode::kBfind:
    case Opcode::kBrev:
    case Opcode::kCvt:
    case Opcode::kNeg:
    case Opcode::kNot:
    case Opcode::kPopc:
    case Opcode::kRcp:
    case Opcode::kSqrt:
      return destinations == 1 && sources == 1;
    default:
      return destinations == 1 && sources == 2;
  }
}

uint64_t evaluate(const Instruction& i, std::span<const uint64_t> s) {
  const Type t = i.type;
  const bool is_float = t == Type::kF32;
  switch (i.opcode) {
    case Opcode::kAdd:
      return is_float ? to_bits(to_float(s[0]) + to_float(s[1])) : truncate(s[0] + s[1], t);
    case Opcode::kSub:
      return is_float ? to_bits(to_float(s[0]) - to_float(s[1])) : truncate(s[0] - s[1], t);
    case Opcode::kMul:
      return is_float ? to_bits(to_float(s[0]) * to_float(s[1])) : multiply(i, s[0], s[1]);
    case Opcode::kMad:
      return truncate(s[0] * s[1] + s[2], t);
    case Opcode::kFma:
      return to_bits(std::fma(to_float(s[0]), to_float(s[1]), to_float(s[2])));
    case Opcode::kDiv:
      return divide(t, s[0], s[1]);
    case Opcode::kRcp:
      return to_bits(1.0F / to_float(s[0]));
    case Opcode::kSqrt:
      return to_bits(std::sqrt(to_float(s[0])));
    case Opcode::kAbs:
      return s[0] & ~kSign & 0xFFFFFFFFU;
    case Opcode::kCopysign:  // the sign of the first, the magnitude of the second
      return (s[0] & kSign) | (s[1] & ~kSign & 0xFFFFFFFFU);
    case Opcode::kNeg:
      return is_float ? (s[0] ^ kSign) & 0xFFFFFFFFU : truncate(0 - s[0], t);
    case Opcode::kMin:
    case Opcode::kMax: {
      const uint64_t a = truncate(s[0], t), b = truncate(s[1], t);
      const bool less = is_signed(t) ? to_signed(a) < to_signed(b) : a < b;
      return less == (i.opcode == Opcode::kMin) ? a : b;
    }
    case Opcode::kAnd:
      return truncate(s[0] & s[1], t);
    case Opcode::kOr:
      return truncate(s[0] | s[1], t);
    case Opcode::kXor:
      return truncate(s[0] ^ s[1], t);
    case Opcode::kNot:
      return truncate(~s[0], t);
    case Opcode::kShl: {
      const uint64_t amount = s[1] & 0xFFFFFFFFU;
      return amount >= bits_of(t) ? 0 : truncate(s[0] << amount, t);
    }
    case Opcode::kShr:
      return shift_right(t, s[0], s[1] & 0xFFFFFFFFU);
    case Opcode::kSetp:
      return compare(i, s[0], s[1]) ? 1 : 0;
    case Opcode::kSelp:
      return truncate(s[2] != 0 ? s[0] : s[1], t);
    case Opcode::kMov:
      return truncate(s[0], t);
    case Opcode::kCvt:
      return convert(t, i.source_type, s[0]);
    case Opcode::kBfi:
      return insert_bits(s[0], s[1], s[2], s[3]);
    case Opcode::kBfind:  // how far to shift left for the highest one to be at bit 31
      return (s[0] & 0xFFFFFFFFU) == 0
                 ? 0xFFFFFFFFU
                 : static_cast<uint64_t>(std::countl_zero(static_cast<std::uint32_t>(s[0])));
    case Opcode::kBrev:
      return reverse_bits(s[0]);
    case Opcode::kPopc:
      return static_cast<uint64_t>(std::popcount(static_cast<std::uint32_t>(s[0])));
    case Opcode::kPrmt:
      return permute(s[0], s[1], s[2]);
    default:
      return 0;  // the others do more than compute
  }
}

}  // namespace ptx
