// JSON texts, hashes and fingerprints.
#include "engine/algo/json_value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/algo/mopd_fingerprint.h"
#include "engine/algo/sha256.h"
#include "engine/algo/tool_schema.h"

namespace areal::algo {
namespace {

std::string round_trip(std::string_view text, KeyOrder order = KeyOrder::kAsWritten) {
  const auto value = parse_json(text);
  return value ? json_text(value.value(), order) : "error";
}

TEST(JsonValue, WritesAsPythonDoes) {
  EXPECT_EQ(round_trip(R"( { "b" : [ 1 , -2.50 , 1E-7, 1e16, 123456789012345678901234567890, 1e15 ], "a" : null } )"),
            R"({"b":[1,-2.5,1e-07,1e+16,123456789012345678901234567890,1000000000000000.0],"a":null})");
  EXPECT_EQ(round_trip(R"({"b":{"z":true,"a":false},"a":[]})", KeyOrder::kSorted),
            R"({"a":[],"b":{"a":false,"z":true}})");
  EXPECT_EQ(round_trip(R"(["\u00e9\ud83d\ude00\u001f\/\"\\\n"])"), "[\"\u00e9\U0001F600\\u001f/\\\"\\\\\\n\"]");
  EXPECT_EQ(round_trip("-0"), "0");
  EXPECT_EQ(round_trip("-0.0"), "-0.0");
  EXPECT_EQ(round_trip("0.0001"), "0.0001");
  EXPECT_EQ(round_trip("0.00001"), "1e-05");
  EXPECT_EQ(round_trip(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");
  EXPECT_EQ(round_trip(R"({"a":1,"a":2,"b":{"c":0},"a":{"x":1},"d":4,"b":5})"), R"({"a":{"x":1},"b":5,"d":4})");
  EXPECT_EQ(round_trip("{}"), "{}");
  EXPECT_EQ(round_trip("\"x\""), "\"x\"");
}

TEST(JsonValue, RefusesWhatIsNoJson) {
  for (const char* text : {"",    "{",    "[1,]",   "{\"a\"}",    "{\"a\":}", "{a:1}",   "[1 2]",       "01",
                           "1.",  "1e",   "+1",     "nul",        "NaN",      "\"\\x\"", "\"\\ud800\"", "\"\\udc00\"",
                           "\"a", "[1]]", "\"\n\"", "{\"a\":1,}", "1e999",    "-"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  EXPECT_FALSE(parse_json(std::string_view("[1]\0x", 5))) << "text behind a zero byte";
  EXPECT_FALSE(parse_json("\xEF\xBB\xBF[1]")) << "a byte order mark";
  EXPECT_FALSE(parse_json("\"\xFF\"")) << "no UTF-8";
}

// A vocabulary has hundreds of thousands of keys: time in proportion, near enough.
TEST(JsonValue, LargeObjectsAreReadInTime) {
  std::string text = "{";
  for (int word = 0; word < 200'000; ++word) text += fmt::format("{}\"w{}\":{}", word == 0 ? "" : ",", word, word);
  text += "}";
  EXPECT_EQ(round_trip(text), text);
  // Nor does what a client sends, or a damaged file, take quadratic time behind the reader.
  EXPECT_TRUE(architecture_fingerprint(text));
  text.back() = ',';
  const JsonValue tool = parse_json(text + R"("type":"function","name":"f"})").value();
  EXPECT_EQ(align_tools({tool}, false).tools[0].find("function")->keys.size(), 200'001U);
}

TEST(JsonValue, DepthHasALimit) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + "0" + std::string(levels, ']'); };
  EXPECT_EQ(round_trip(nested(kJsonDepth)), nested(kJsonDepth));
  EXPECT_EQ(parse_json(nested(kJsonDepth + 1)).error().code, Errc::kUnsupported);
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
}

// FIPS 180-4's example: words are read big-endian, hex keeps the zeros in front.
TEST(Sha256, WordsAndHexAreTheDigests) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abc").front(), 0xba7816bfU);
  EXPECT_EQ(sha256("abc").back(), 0xf20015adU);
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Fingerprint, PresentationDoesNotCount) {
  const auto of = [](std::string_view config) { return architecture_fingerprint(config).value().sha256; };
  EXPECT_EQ(of(R"({"hidden_size":64,"torch_dtype":"bfloat16"})"), of(R"({"use_cache":true,"hidden_size":64})"));
  EXPECT_NE(of(R"({"hidden_size":64})"), of(R"({"hidden_size":65})"));
  EXPECT_FALSE(architecture_fingerprint("[]"));
  EXPECT_FALSE(architecture_fingerprint("{"));
}

// The same ids in another kind of file have another fingerprint: kept as it is upstream.
TEST(Fingerprint, TokenizersDifferByTheirFiles) {
  const auto vocab =
      tokenizer_fingerprint(
          {.vocab_json = R"({"a":0})", .tokenizer_json = {}, .tokenizer_model = {}, .tokenizer_config_json = {}})
          .value();
  const auto tokenizer = tokenizer_fingerprint({.vocab_json = {},
                                                .tokenizer_json = R"({"model":{"vocab":{"a":0}},"added_tokens":[]})",
                                                .tokenizer_model = {},
                                                .tokenizer_config_json = {}})
                             .value();
  const auto model = tokenizer_fingerprint({.vocab_json = {},
                                            .tokenizer_json = {},
                                            .tokenizer_model = "abc",
                                            .tokenizer_config_json = R"({"added_tokens_decoder":{"5":"x"}})"})
                         .value();
  EXPECT_NE(vocab.sha256, tokenizer.sha256);
  EXPECT_EQ(tokenizer.canonical, R"({"added_tokens":[],"added_tokens_decoder":{},"vocabulary":{"a":0}})");
  EXPECT_EQ(model.canonical,
            R"({"added_tokens":null,"added_tokens_decoder":{"5":"x"},"vocabulary":")" + sha256_hex("abc") + "\"}");
  EXPECT_EQ(tokenizer_fingerprint({}).error().code, Errc::kIo);
  EXPECT_EQ(tokenizer_fingerprint(
                {.vocab_json = {}, .tokenizer_json = "{}", .tokenizer_model = {}, .tokenizer_config_json = {}})
                .error()
                .code,
            Errc::kInvalid);
}

TEST(Fingerprint, OnlyTheActorMayHaveAnotherArchitecture) {
  const ModelFingerprints actor{"actor", "small", "t"};
  EXPECT_TRUE(check_compatible(actor, std::vector<ModelFingerprints>{{"a", "large", "t"}, {"b", "large", "t"}}));
  EXPECT_FALSE(check_compatible(actor, std::vector<ModelFingerprints>{{"a", "large", "t"}, {"b", "small", "t"}}));
  EXPECT_FALSE(check_compatible(actor, std::vector<ModelFingerprints>{{"a", "large", "other"}}));
}

std::string aligned(std::string_view tool, bool canonical = true) {
  return json_text(align_tools({parse_json(tool).value()}, canonical).tools[0], KeyOrder::kAsWritten);
}

TEST(Tools, AligningTwiceIsAligningOnce) {
  for (const char* tool :
       {R"({"type":"function","name":"f","strict":true,"extra":1})",
        R"({"function":{"strict":false,"parameters":{"z":1,"a":2},"name":"f","description":"d"},"type":"function"})",
        R"({"type":"function","function":{"parameters":{}}})", R"({"type":"web_search"})", R"({"type":"function"})",
        R"({"type":"function","name":"f","description":5})", R"("text")"}) {
    for (const bool canonical : {true, false})
      EXPECT_EQ(aligned(aligned(tool, canonical), canonical), aligned(tool, canonical)) << tool;
  }
}

TEST(Tools, OrderIsTheServersAndParametersKeepTheirs) {
  EXPECT_EQ(
      aligned(R"({"function":{"strict":true,"parameters":{"z":1,"a":2},"name":"f"},"type":"function","x":0})"),
      R"({"type":"function","function":{"description":null,"name":"f","parameters":{"z":1,"a":2},"strict":true}})");
}

TEST(Tools, WhatIsNotValidStaysNestedAndIsSaid) {
  const AlignedTools got = align_tools({parse_json(R"({"type":"function","name":"f","description":5})").value()}, true);
  EXPECT_EQ(json_text(got.tools[0], KeyOrder::kAsWritten),
            R"({"type":"function","function":{"name":"f","description":5}})");
  EXPECT_EQ(got.warnings.size(), 1U);
  EXPECT_TRUE(align_tools({}, true).tools.empty());
  EXPECT_TRUE(align_tools({}, false).warnings.empty());
}

TEST(Tools, ArgumentsThatAreAnObjectsTextBecomeIt) {
  const auto parsed = [](std::string_view message) {
    return json_text(with_parsed_tool_arguments(parse_json(message).value()), KeyOrder::kAsWritten);
  };
  EXPECT_EQ(parsed(R"({"tool_calls":[{"function":{"name":"f","arguments":"{\"b\": 1, \"a\": 2}"}}]})"),
            R"({"tool_calls":[{"function":{"name":"f","arguments":{"b":1,"a":2}}}]})");
  for (const char* kept : {R"({"role":"user","content":"x"})", R"({"tool_calls":[{"function":{"arguments":{"a":1}}}]})",
                           R"({"tool_calls":[{"function":{"arguments":"not json"}}]})", R"({"tool_calls":null})"}) {
    EXPECT_EQ(parsed(kept), kept);
  }
}

}  // namespace
}  // namespace areal::algo
