#pragma once

#include "src/dense/matrix.h"
#include "src/dense/ops.h"

namespace satrap::dense {

/// For a layer whose input others read too: backward(part) writes the gradient of x to a part of
/// `work`, which is added to dx. A side of dx whose data is null is left out.
template <class Backward>
void add_gradient(ConstJoined x, Matrix work, Joined dx, const Backward& backward) {
  const Joined part(work.columns(0, x.left.cols), work.columns(x.left.cols, x.right.cols));
  backward(part);
  if (dx.left.data != nullptr) add(part.left, dx.left);
  if (dx.right.data != nullptr) add(part.right, dx.right);
}

}  // namespace satrap::dense
