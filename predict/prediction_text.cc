#include "predict/prediction_text.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "messages/text_encoding.h"

namespace arbalest::jobs {

namespace {

// The text as a JSON string; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string csv_field(std::string_view text) { return safe_text(text, TextFor::kCsv); }

}  // namespace

PredictionText::PredictionText(const ModelDescription& description, PredictionFormat format, int top, bool has_files)
    : description_(description),
      format_(format),
      choices_(static_cast<int>(std::min<std::int64_t>(top, description.outputs))),
      has_files_(has_files) {}

std::string PredictionText::header() const {
  if (format_ != PredictionFormat::kCsv) return "";
  std::string columns = has_files_ ? "file" : "index";
  if (predicts_numbers()) columns += ",score";
  for (int k = 1; k <= choices_ && !predicts_numbers(); ++k) columns += fmt::format(",label_{0},probability_{0}", k);
  return columns + ",error\n";
}

std::string PredictionText::line(std::string_view source, const Prediction& prediction) const {
  switch (format_) {
    case PredictionFormat::kJsonl: return json(source, prediction) + "\n";
    case PredictionFormat::kCsv: return csv(source, prediction) + "\n";
    case PredictionFormat::kText: break;
  }
  return text(source, prediction) + "\n";
}

std::string PredictionText::json(std::string_view source, const Prediction& prediction) const {
  const std::string name = has_files_ ? "\"file\": " + json_string(source) : fmt::format("\"index\": {}", source);
  if (!prediction.error.empty()) return fmt::format("{{{}, \"error\": {}}}", name, json_string(prediction.error));
  if (prediction.score) return fmt::format("{{{}, \"score\": {}}}", name, *prediction.score);
  std::vector<std::string> choices;
  for (const Prediction::Choice& choice : prediction.top) {
    choices.push_back(fmt::format(R"({{"label": {}, "output": {}, "probability": {}}})",
                                  json_string(description_.label(choice.output)), choice.output, choice.probability));
  }
  return fmt::format("{{{}, \"top\": [{}]}}", name, fmt::join(choices, ", "));
}

std::string PredictionText::csv(std::string_view source, const Prediction& prediction) const {
  std::string row = csv_field(source);
  if (predicts_numbers()) row += prediction.score ? fmt::format(",{}", *prediction.score) : ",";
  for (int k = 0; k < choices_ && !predicts_numbers(); ++k) {
    if (prediction.top.empty()) {
      row += ",,";
      continue;
    }
    const Prediction::Choice& choice = prediction.top.at(static_cast<std::size_t>(k));
    row += fmt::format(",{},{}", csv_field(description_.label(choice.output)), choice.probability);
  }
  return row + "," + csv_field(prediction.error);
}

std::string PredictionText::text(std::string_view source, const Prediction& prediction) const {
  const std::string name = printable(source);
  if (!prediction.error.empty()) return fmt::format("{}: error: {}", name, printable(prediction.error));
  if (prediction.score) return fmt::format("{}: {}", name, *prediction.score);
  std::vector<std::string> choices;
  for (const Prediction::Choice& choice : prediction.top) {
    choices.push_back(fmt::format("{} {:.4f}", printable(description_.label(choice.output)), choice.probability));
  }
  return fmt::format("{}: {}", name, fmt::join(choices, ", "));
}

}  // namespace arbalest::jobs
