# Runs after a test program has been linked: writes INCLUDE, which registers every suite of PROGRAM with ctest as the
# test <NAME>.<suite>, which starts before single tests (COST), with its results in RESULTS/<NAME>.<suite>.xml ("/" in
# names becomes "-"). EMULATOR: the command that runs programs of another architecture.
set(command ${EMULATOR} "${PROGRAM}")
list(TRANSFORM command REPLACE "(.+)" "[[\\1]]" OUTPUT_VARIABLE quoted)
list(JOIN quoted " " quoted)
execute_process(COMMAND ${command} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "(^|\n)[^ \n]+\\." suites "${listed}")
set(text "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "^\n|\\.$" "" suite "${suite}")
  string(REPLACE "/" "-" file "${NAME}.${suite}")
  string(APPEND text
    "add_test([[${NAME}.${suite}]] ${quoted} [[--gtest_filter=${suite}.*]] [[--gtest_output=xml:${RESULTS}/${file}.xml]])\n"
    "set_tests_properties([[${NAME}.${suite}]] PROPERTIES LABELS [[${NAME}]] TIMEOUT 1200 COST 100\n"
    "  ENVIRONMENT OMP_NUM_THREADS=1 WORKING_DIRECTORY [[${FOLDER}]])\n")
endforeach()
file(WRITE "${INCLUDE}" "${text}")
