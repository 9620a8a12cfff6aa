#include "replay/record/meta_file.h"

#include <fstream>
#include <string_view>

#include "replay/record/compress.h"
#include "replay/record/database.h"

namespace areal::record {

namespace {

std::string quoted(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      out += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

Status write_meta(const std::string& path, std::span<const std::pair<std::string, std::string>> values) {
  const std::string meta_path = path + ".meta.json";
  std::ofstream out(meta_path, std::ios::binary | std::ios::trunc);
  out << "{\n";
  for (const auto& [key, value] : values) out << "  " << quoted(key) << ": " << quoted(value) << ",\n";
  out << "  \"sqlite\": " << quoted(sqlite_version()) << ",\n  \"zstd\": " << quoted(zstd_version()) << "\n}\n";
  out.close();
  if (!out) return Error{Errc::kIo, meta_path + ": cannot be written"};
  return Unit{};
}

}  // namespace areal::record
