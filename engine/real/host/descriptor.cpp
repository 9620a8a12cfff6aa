#include "engine/real/host/descriptor.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace areal::host {

void Descriptor::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

Error errno_error(const std::string& what) {
  return {Errc::kIo, what + ": " + std::error_code(errno, std::generic_category()).message()};
}

}  // namespace areal::host
