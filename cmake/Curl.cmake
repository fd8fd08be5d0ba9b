# CURL::libcurl, by which HDFS is read: an optional part. Result: SATRAP_HAVE_HDFS. Without it satrap is built without the
# part, and says so to who needs it.
set(SATRAP_CURL_VERSION 7.88)
set(SATRAP_HAVE_HDFS OFF)
find_package(CURL ${SATRAP_CURL_VERSION} QUIET)
if(NOT CURL_FOUND)
  message(STATUS "HDFS: off (libcurl ${SATRAP_CURL_VERSION} or newer not found; ./launch/setup.sh hdfs installs it)")
  return()
endif()
set(SATRAP_HAVE_HDFS ON)
message(STATUS "HDFS: libcurl ${CURL_VERSION_STRING}")
