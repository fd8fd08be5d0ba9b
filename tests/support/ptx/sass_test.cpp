#include "tests/support/ptx/sass.h"

#include <sstream>

#include <gtest/gtest.h>

namespace ptx {
namespace {

/// A listing of one kernel: numbers stand for "the next instructions come from that line".
std::string listing(const std::string& lines) {
  std::istringstream in(lines);
  std::ostringstream out;
  out << "\t.target\tsm_90\n//--------------------- .text._Z1kv "
         "--------------------------\n_Z1kv:\n";
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of("0123456789") == std::string::npos) {
      out << "\t//## File \".nv_debug_ptx_txt\", line " << line << "\n";
    } else if (line.ends_with(":")) {
      out << line << "\n";
    } else {
      out << "        /*00a0*/                   " << line << " ;\n";
    }
  }
  return out.str();
}

double issued(const std::string& lines, const std::map<int, std::int64_t>& executions) {
  std::istringstream text(listing(lines));
  std::map<std::string, Sass> kernels;
  Sass::read(text, kernels);
  return kernels.at(canonical_name("_Z1kv")).issued(executions);
}

TEST(Sass, CountsAStraightLine) {
  EXPECT_EQ(
      issued("1\nLDC R1, c[0x0][0x28]\n2\nLDG.E R2, desc[UR4][R2.64]\nEXIT", {{1, 1}, {2, 4}}),
      3 * 4);
}

TEST(Sass, CountsALoopByItsBranchAndWhatIsHoistedOnceByWhereItStands) {
  const std::string lines =
      "1\nS2R R0, SR_TID.X\n5\nIMAD.SHL.U32 R9, R0, 0x4, RZ\n1\n@P0 EXIT\n"
      ".L_x_0:\n5\nIADD3 R1, R1, R9, RZ\n6\n@!P0 BRA `(.L_x_0)\n7\nEXIT\nNOP\nNOP";
  EXPECT_EQ(issued(lines, {{1, 1}, {5, 10}, {6, 10}, {7, 1}}), 3 + 2 * 10 + 1);
}

TEST(Sass, CountsAPredicatedLoadAsOftenAsItsBlock) {
  EXPECT_EQ(issued("1\nSHFL.IDX PT, R7, R8, RZ, R3\n2\n@!P0 LDG.E R2, desc[UR4][R2.64]\n3\nEXIT",
                   {{1, 8}, {2, 5}, {3, 8}}),
            3 * 8);
}

TEST(Sass, DividesExecutionsAmongTheCopiesOfAnUnrolledLoop) {
  const std::string lines =
      ".L_x_0:\n4\nLDG.E R2, desc[UR4][R2.64]\n5\nBRA `(.L_x_0)\n"
      ".L_x_1:\n4\nLDG.E R2, desc[UR4][R2.64]\n5\nBRA `(.L_x_1)\n6\nEXIT";
  EXPECT_EQ(issued(lines, {{4, 12}, {5, 12}, {6, 1}}), 2 * 6 + 2 * 6 + 1);
}

TEST(Sass, LeavesOutDivergentCollectivesAndSubroutines) {
  const std::string lines =
      "1\nUMOV UR6, 0xffffffff\nBRA.DIV UR6, `(.L_x_2)\nSHFL.IDX PT, R7, R8, RZ, R3\n"
      ".L_x_1:\n2\n@!P0 BRA `(.L_x_3)\nMOV R8, 0x150\nCALL.REL.NOINC "
      "`($__internal_0_$__cuda_root)\n"
      "BRA `(.L_x_4)\n.L_x_3:\n3\nFFMA R1, R1, R2, R3\n.L_x_4:\n4\nEXIT\n"
      ".L_x_2:\n1\nWARPSYNC.COLLECTIVE R4, `(.L_x_5)\nSHFL.IDX PT, R7, R8, RZ, R3\nBRA `(.L_x_1)\n"
      "$__internal_0_$__cuda_root:\n2\nMUFU.RSQ R2, R2\nRET.REL.NODEC R8 `(_Z1kv)";
  EXPECT_EQ(issued(lines, {{1, 7}, {2, 7}, {3, 7}, {4, 7}}), (3 + 1 + 1 + 1) * 7);
}

TEST(Sass, CountsNothingThatIsNeverExecuted) { EXPECT_EQ(issued("1\nEXIT", {}), 0); }

}  // namespace
}  // namespace ptx
