#include "engine/real/host/address_book.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace areal::host {
namespace {

// Takes the text up to the next space, or all of it.
std::string_view take_word(std::string_view& rest) {
  const std::size_t end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return word;
}

template <class Number>
bool parse_number(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size() && !word.empty();
}

Error io_error(const std::string& path, const std::error_code& code) {
  return {Errc::kIo, path + ": " + code.message()};
}

}  // namespace

std::string RunDirectory::path(NodeId node) const {
  return directory_ + "/nodes/" + std::to_string(node.value) + ".addr";
}

Status RunDirectory::publish(NodeId node, const PeerAddress& address) {
  std::error_code code;
  std::filesystem::create_directories(directory_ + "/nodes", code);
  if (code) return io_error(directory_, code);
  const std::string whole = path(node);
  const std::string part = whole + "." + std::to_string(::getpid());
  {
    std::ofstream file(part, std::ios::trunc);
    file << address.address << ' ' << std::to_string(address.port) << ' ' << std::to_string(address.incarnation)
         << '\n';
    file.close();
    if (!file) return Error{Errc::kIo, part + ": cannot be written"};
  }
  std::filesystem::rename(part, whole, code);
  if (code) return io_error(whole, code);
  return Unit{};
}

Status RunDirectory::withdraw(NodeId node) {
  std::error_code code;
  std::filesystem::remove(path(node), code);
  if (code) return io_error(path(node), code);
  return Unit{};
}

std::optional<PeerAddress> RunDirectory::find(NodeId node) {
  std::ifstream file(path(node));
  std::string text(128, '\0');  // Longer than any address.
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty() || text.back() != '\n') return std::nullopt;
  std::string_view rest(text);
  rest.remove_suffix(1);
  PeerAddress found;
  found.address = take_word(rest);
  const bool has_port = parse_number(take_word(rest), found.port);
  const bool has_incarnation = parse_number(rest, found.incarnation);
  if (found.address.empty() || !has_port || !has_incarnation || found.port == 0) return std::nullopt;
  return found;
}

}  // namespace areal::host
