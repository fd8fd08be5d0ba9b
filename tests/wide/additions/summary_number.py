"""mean_row_bytes: the mean size of a row of the tables."""

from places import Addition, Edit

ADDITION = Addition("summary number", [
    Edit("src/trainer/run_numbers.cpp", '      {"resident_bytes", resident_bytes()}};\n', """\
      {"resident_bytes", resident_bytes()},
      {"mean_row_bytes", static_cast<double>(size.bytes) /
                             static_cast<double>(size.rows > 0 ? size.rows : 1)}};
"""),
])
