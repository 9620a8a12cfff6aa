#include "bench/arguments.h"

#include <cstdio>
#include <cxxopts.hpp>
#include <exception>
#include <stdexcept>

namespace areal::bench {

Arguments::Arguments(const std::string& program, const std::string& what)
    : program_(program), options_(std::make_unique<cxxopts::Options>(program, what)) {
  flag("help", "shows this");
}

Arguments::~Arguments() = default;

Arguments& Arguments::flag(const std::string& name, const std::string& text) {
  options_->add_options()(name, text);
  return *this;
}

Arguments& Arguments::number(const std::string& name, const std::string& text, const Number& number) {
  const std::string shown = number.preset == 0 ? text : text + "; " + std::to_string(number.preset) + " unless given";
  options_->add_options()(name, shown, cxxopts::value<std::uint64_t>(), "N");
  ranges_[name] = number;
  numbers_[name] = number.preset;
  return *this;
}

void Arguments::read(int count, char** words) {
  const cxxopts::ParseResult parsed = options_->parse(count, words);
  if (!parsed.unmatched().empty()) {
    throw std::invalid_argument("'" + parsed.unmatched().front() + "' belongs to no option");
  }
  for (const cxxopts::KeyValue& one : parsed.arguments()) given_[one.key()] = true;
  for (auto& [name, value] : numbers_) {
    if (!has(name)) continue;
    value = parsed[name].as<std::uint64_t>();
    const Number& range = ranges_.at(name);
    if (value >= range.least && value <= range.most) continue;
    throw std::invalid_argument("--" + name + " must be from " + std::to_string(range.least) + " to " +
                                std::to_string(range.most));
  }
}

std::optional<int> Arguments::parse(int count, char** words) {
  try {
    read(count, words);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "%s: %s; --help shows the options\n", program_.c_str(), wrong.what());
    return 64;
  }
  if (!has("help")) return std::nullopt;
  std::printf("%s", options_->help().c_str());
  return 0;
}

}  // namespace areal::bench
