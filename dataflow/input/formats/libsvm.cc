#include "dataflow/input/formats/libsvm.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dataflow/input/formats/growing_vector.h"
#include "dataflow/input/formats/input_file.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace {

constexpr std::size_t kLongestWord = 64;  // more digits than a number needs
constexpr const char* kCut =
    "the file ends without a line break, so its last line may be cut; get the file again, or end that line";

bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\r'; }

// The word for a message, without the bytes of binary files.
std::string printable(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

// Numbers beyond the type become the nearest that it has: infinity, 0 or the largest integer.
template <typename Number>
std::optional<Number> number_in(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  if (word.starts_with('+')) return std::nullopt;
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (end != word.data() + word.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc()) return number;
  if constexpr (std::is_integral_v<Number>) {
    return word.starts_with('-') ? std::numeric_limits<Number>::min() : std::numeric_limits<Number>::max();
  } else {
    return std::strtod(std::string(word).c_str(), nullptr);
  }
}

class LibsvmReader {
 public:
  LibsvmReader(const std::filesystem::path& path, std::int64_t features, const engine::host::MemoryBudget& budget)
      : file_(path), limit_{budget, path.string(), "use fewer rows or features, or more memory"} {
    rows_.columns = features;
  }

  SparseRows read() {
    while (read_line()) {
    }
    if (rows_.rows() == 0) {
      engine::fail(engine::ErrorKind::kData, "{}: has no row; a row is a line such as \"+1 3:0.5 17:2\"",
                   file_.path().string());
    }
    return std::move(rows_);
  }

 private:
  static constexpr int kEnd = -1;

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    engine::fail(engine::ErrorKind::kData, "{}:{}: {}", file_.path().string(), line_,
                 fmt::format(format, std::forward<Args>(args)...));
  }

  // The next byte, which stays there; kEnd at the end of the file.
  int peek() {
    if (next_ == filled_) {
      filled_ = file_.read_up_to(buffer_);
      next_ = 0;
      if (filled_ == 0) return kEnd;
    }
    return buffer_[next_];
  }
  void skip() { ++next_; }

  // Returns false at the end of the file.
  bool read_line() {
    ++line_;
    if (peek() == kEnd) return false;
    if (has_word()) {
      read_label();
      while (has_word()) read_entry();
      add(rows_.starts, rows_.entries());
    }
    skip();  // the line break
    return true;
  }

  // Goes to the next word of the line, or to the line break if there is none.
  bool has_word() {
    while (is_blank(peek())) skip();
    if (peek() == '#') {
      while (peek() != '\n' && peek() != kEnd) skip();
    }
    if (peek() == kEnd) fail("{}", kCut);
    return peek() != '\n';
  }

  std::string_view read_word() {
    word_.clear();
    for (int c = peek(); c != '\n' && c != '#' && !is_blank(c); c = peek()) {
      if (c == kEnd) fail("{}", kCut);
      if (word_.size() == kLongestWord) fail("'{}...' is too long for a number", printable(word_));
      word_ += static_cast<char>(c);
      skip();
    }
    return word_;
  }

  void read_label() {
    const std::string_view word = read_word();
    const std::optional<double> label = number_in<double>(word);
    const bool is_known = label && (*label == 1.0 || *label == -1.0 || *label == 0.0);
    if (!is_known) {
      fail(
          "label '{}' is none of -1 and 1, or 0 and 1; this model has two classes: replace other labels, such as 1 and "
          "2",
          printable(word));
    }
    if (*label != 1.0) check_negative(*label);
    add(rows_.labels, static_cast<std::int8_t>(*label == 1.0 ? 1 : -1));
  }

  // One file writes the negative class in one way; otherwise its labels are of three classes.
  void check_negative(double label) {
    if (negative_line_ == 0) {
      negative_ = label;
      negative_line_ = line_;
    } else if (label != negative_) {
      fail("label {} is in a file with label {} (line {}); this model has two classes: -1 and 1, or 0 and 1", label,
           negative_, negative_line_);
    }
  }

  void read_entry() {
    const std::string_view word = read_word();
    const std::size_t colon = word.find(':');
    if (word.starts_with("qid:")) fail("'{}' is for ranking, which this model cannot do; remove it", printable(word));
    if (colon == std::string_view::npos) fail("'{}' is no feature:value pair such as 3:0.5", printable(word));
    const std::int64_t feature = checked_feature(word.substr(0, colon));
    const float value = checked_value(feature, word.substr(colon + 1));
    if (value == 0.0F) return;
    add(rows_.indices, static_cast<std::int32_t>(feature - 1));
    add(rows_.values, value);
  }

  template <typename T>
  void add(std::vector<T>& to, T element) {
    make_room(to, 1, limit_);
    to.push_back(element);
  }

  std::int64_t checked_feature(std::string_view word) {
    const std::optional<std::int64_t> feature = number_in<std::int64_t>(word);
    if (!feature) fail("feature number '{}' is no whole number", printable(word));
    if (*feature == 0) fail("feature number 0: features are counted from 1; add 1 to all feature numbers of the file");
    if (*feature < 0) fail("feature number {} is negative; features are counted from 1", printable(word));
    if (*feature > rows_.columns) {
      fail("feature number {} is beyond the {} features of the model; set data.libsvm.features to the largest number",
           printable(word), rows_.columns);
    }
    if (is_first_of_row()) last_feature_ = 0;
    if (*feature <= last_feature_) {
      fail("feature number {} does not ascend from {}; sort the features of each row, and name none twice", *feature,
           last_feature_);
    }
    last_feature_ = *feature;
    row_of_last_feature_ = rows_.rows();
    return *feature;
  }

  bool is_first_of_row() const { return row_of_last_feature_ != rows_.rows(); }

  float checked_value(std::int64_t feature, std::string_view word) const {
    if (word.empty()) fail("feature {} has no value", feature);
    const std::optional<double> value = number_in<double>(word);
    if (!value) fail("value '{}' of feature {} is no number", printable(word), feature);
    if (!(std::abs(*value) <= double{std::numeric_limits<float>::max()})) {
      fail("value '{}' of feature {} is not finite as float32; correct it, or leave the feature out", printable(word),
           feature);
    }
    return static_cast<float>(*value);
  }

  InputFile file_;
  GrowthLimit limit_;
  SparseRows rows_;
  std::array<std::uint8_t, 1 << 16> buffer_{};
  std::size_t next_ = 0;
  std::size_t filled_ = 0;
  std::string word_;
  std::int64_t line_ = 0;
  std::int64_t last_feature_ = 0;
  std::int64_t row_of_last_feature_ = 0;
  double negative_ = 0.0;           // the label of the negative class
  std::int64_t negative_line_ = 0;  // its first line; 0: none so far
};

}  // namespace

SparseRows load_libsvm(const std::filesystem::path& path, std::int64_t features,
                       const engine::host::MemoryBudget& budget) {
  return LibsvmReader(path, features, budget).read();
}

}  // namespace arbalest::dataflow
