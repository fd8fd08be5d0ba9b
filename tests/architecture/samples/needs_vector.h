#pragma once

// Does not compile alone: the test of the header check.
std::vector<int> numbers();
