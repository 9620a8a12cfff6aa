#include "engine/real/host/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace areal::host {
namespace {

// A writer that ends while another opens the file makes the other start over; this often only if they race on purpose.
constexpr int kMaxTries = 100;

bool is_still_at(int file, const std::filesystem::path& path) {
  struct stat open_file{};
  struct stat named{};
  return ::fstat(file, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 && open_file.st_ino == named.st_ino &&
         open_file.st_dev == named.st_dev;
}

Status sync_folder(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const Descriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() || ::fsync(folder.number()) != 0) return errno_error(parent.string());
  return Unit{};
}

}  // namespace

Result<DurableFile> DurableFile::create(const std::filesystem::path& path) {
  const std::filesystem::path temporary = path.string() + ".new";
  for (int i = 0; i < kMaxTries; ++i) {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!file.is_open()) return errno_error(temporary.string());
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) return errno_error(temporary.string() + " is being written");
    // The writer before may have renamed or removed it since it was opened.
    if (!is_still_at(file.number(), temporary)) continue;
    if (::ftruncate(file.number(), 0) != 0) return errno_error(temporary.string());
    return DurableFile(path, temporary, std::move(file));
  }
  return Error{Errc::kIo, temporary.string() + ": other writers do not end"};
}

DurableFile::~DurableFile() {
  if (file_.is_open()) ::unlink(temporary_.c_str());
}

Status DurableFile::append(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(temporary_.string());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return Unit{};
}

Status DurableFile::commit() {
  if (::fsync(file_.number()) != 0) return errno_error(temporary_.string());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error(path_.string());
  file_.close();
  return sync_folder(path_);
}

Status replace_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  auto file = DurableFile::create(path);
  if (!file) return file.error();
  AREAL_TRY(file->append(bytes));
  return file->commit();
}

Result<std::size_t> read_up_to(int file, std::span<std::uint8_t> bytes) {
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

Result<std::optional<std::vector<std::uint8_t>>> read_file(const std::filesystem::path& path, std::size_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return std::optional<std::vector<std::uint8_t>>();
    return errno_error(path.string());
  }
  std::vector<std::uint8_t> bytes;
  constexpr std::size_t kChunkBytes = 4096;  // Files of /proc do not tell their size.
  while (bytes.size() <= limit) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kChunkBytes);
    const auto got = read_up_to(file.number(), std::span(bytes).subspan(before));
    if (!got) return Error{Errc::kIo, path.string() + ": " + got.error().detail};
    bytes.resize(before + *got);
    if (*got < kChunkBytes) break;
  }
  if (bytes.size() > limit) return Error{Errc::kIo, path.string() + ": too long"};
  return std::optional(std::move(bytes));
}

}  // namespace areal::host
