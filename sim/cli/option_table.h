// The one table of subcommands and options: what they take, what they mean, and where they apply.
//
// The parser, --help, the AREAL_SIM_* environment variables and "did you mean" are made from it. Constant data.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace areal::cli {

struct CommandRow {
  std::string_view name;
  std::string_view form;      // "replay RUN.db [options]".
  std::string_view summary;   // One line.
  std::string_view more;      // What else a newcomer needs: whole lines.
  std::string_view examples;  // Whole lines.
  std::size_t files_min = 0;
  std::size_t files_max = 0;
  bool files_exist = false;  // Its words are names of files.
};

struct OptionRow {
  std::string_view name;
  std::string_view value;     // What follows it: "N"; empty for a flag.
  std::string_view commands;  // Names of the subcommands that take it, with a blank between; "*": all.
  std::string_view text;
  bool repeatable = false;
};

std::span<const CommandRow> command_rows();
std::span<const OptionRow> option_rows();

// Null if there is none of that name.
const CommandRow* find_command(std::string_view name);
const OptionRow* find_option(std::string_view name);
bool applies(const OptionRow& option, std::string_view command);

// AREAL_SIM_SEED for "seed".
std::string variable_of(const OptionRow& option);

// The text of --help: of all, or of one subcommand.
std::string help_text();
std::string help_text(const CommandRow& command);

}  // namespace areal::cli
