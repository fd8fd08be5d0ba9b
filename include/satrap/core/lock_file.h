#pragma once

#include <chrono>
#include <string>

namespace satrap {

/// Opens a file that processes lock (flock), and creates it if it is missing. Whoever can open a
/// file can lock it, for reading is enough; so it is open to those who may write to its folder, and
/// to nobody else. Follows no link and waits for nobody. -1 with errno if there is none to be had.
int open_lock_file(const std::string& path);

/// Takes the lock of an open file. False with errno if it cannot be had: EWOULDBLOCK if another one
/// still had it after `patience`, else the system has no such locks here.
bool take_lock(int fd, std::chrono::milliseconds patience);

}  // namespace satrap
