// Arguments of a benchmark: options by name, shown by --help; a wrong one is named, and the program ends with 64.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace cxxopts {
class Options;
}  // namespace cxxopts

namespace areal::bench {

struct Number {
  std::uint64_t preset = 0;  // Unless given; need not be in the range.
  std::uint64_t least = 1;
  std::uint64_t most = ~std::uint64_t{0} >> 1;
};

class Arguments {
 public:
  // `what`: a sentence on what is measured.
  Arguments(const std::string& program, const std::string& what);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  Arguments& flag(const std::string& name, const std::string& text);
  Arguments& number(const std::string& name, const std::string& text, const Number& number);

  // The exit status if the program should end now: 0 after --help, 64 after a wrong argument, which stderr names.
  [[nodiscard]] std::optional<int> parse(int count, char** words);

  [[nodiscard]] bool has(const std::string& name) const { return given_.contains(name); }
  // REQUIRES: number() declared it, and parse() let the program go on.
  [[nodiscard]] std::uint64_t operator[](const std::string& name) const { return numbers_.at(name); }

 private:
  void read(int count, char** words);

  std::string program_;
  std::unique_ptr<cxxopts::Options> options_;
  std::map<std::string, Number> ranges_;
  std::map<std::string, std::uint64_t> numbers_;  // As preset, then as given.
  std::map<std::string, bool> given_;
};

}  // namespace areal::bench
