#pragma once

// Does not compile alone: the input of the header check's test.
std::vector<int> numbers();
