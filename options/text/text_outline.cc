#include "options/text/text_outline.h"

#include <map>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "options/text/field_path.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::Tokenizer;

namespace {

// Ignores mistakes in tokens, which the parser reports.
class Silence final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

// Reads the text as protobuf's parser does, but goes on after every mistake.
class Scanner {
 public:
  Scanner(const SourceText& source, const Descriptor& root, std::vector<FieldPlace>& fields)
      : source_(source),
        input_(source.text().data(), static_cast<int>(source.text().size())),
        tokens_(&input_, &silence_),
        fields_(fields) {
    tokens_.set_allow_f_after_float(true);
    tokens_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    messages_.push_back({-1, &root, {}});
  }

  void scan() {
    next();
    while (!is_end() && messages_.size() <= kMaxNesting) {
      if (list_.has_value()) {
        read_element();
      } else {
        read_field();
      }
    }
  }

 private:
  // A message whose end has not been reached.
  struct OpenMessage {
    int place;               // index in fields_
    const Descriptor* type;  // null if unknown
    std::map<const FieldDescriptor*, int> counts;
    std::optional<FieldPlace> list = std::nullopt;  // the list of which the message is an element
  };

  void next() { tokens_.Next(); }
  bool is_end() { return tokens_.current().type == Tokenizer::TYPE_END; }
  bool is_at(const char* text) { return tokens_.current().text == text; }
  bool is_at(Tokenizer::TokenType type) { return tokens_.current().type == type; }
  bool opens() { return is_at("{") || is_at("<"); }
  bool closes() { return is_at("}") || is_at(">"); }
  Position position() { return source_.from_protobuf(tokens_.current().line, tokens_.current().column); }

  void read_field() {
    if (closes()) {
      close();
      return;
    }
    FieldPlace place;
    place.around = messages_.back().place;
    place.name = position();
    if (is_at("[")) {  // the name of an extension, which jobs do not have
      while (!is_end() && !is_at("]")) next();
    } else if (!is_at(Tokenizer::TYPE_IDENTIFIER)) {
      next();  // a separator, or something misplaced
      return;
    } else if (messages_.back().type != nullptr) {
      place.field = messages_.back().type->FindFieldByName(tokens_.current().text);
    }
    next();
    if (is_at(":")) next();
    place.value = place.last = position();
    if (is_at("[")) {
      list_ = place;
      list_->is_in_list = list_->is_empty_list = true;
      list_->list = place.value;
      next();
    } else {
      read_value(place);
    }
  }

  void read_element() {
    if (is_at("]") || closes()) {
      if (list_->is_empty_list) fields_.push_back(*list_);
      list_.reset();
      if (is_at("]")) next();  // else the list is not closed, but the message is
    } else if (is_at(",") || is_at("[")) {
      next();
    } else {
      list_->is_empty_list = false;
      FieldPlace place = *list_;
      place.value = place.last = position();
      read_value(place);
    }
  }

  void read_value(FieldPlace place) {
    OpenMessage& around = messages_.back();
    if (place.field != nullptr && place.field->is_repeated()) place.index = around.counts[place.field]++;
    place.is_message = opens();
    if (place.is_message) {
      fields_.push_back(place);
      const Descriptor* type = place.field == nullptr ? nullptr : place.field->message_type();
      messages_.push_back({static_cast<int>(fields_.size()) - 1, type, {}, list_});
      list_.reset();
      next();
      return;
    }
    if (is_at("-")) next();
    if (is_at(Tokenizer::TYPE_STRING)) {
      for (; is_at(Tokenizer::TYPE_STRING); next()) place.last = position();
    } else if (!closes() && !is_end()) {
      place.last = position();
      next();
    }
    fields_.push_back(place);
  }

  void close() {
    if (messages_.size() > 1) {
      fields_[static_cast<std::size_t>(messages_.back().place)].last = position();
      list_ = messages_.back().list;
      messages_.pop_back();
    }
    next();
  }

  const SourceText& source_;
  google::protobuf::io::ArrayInputStream input_;
  Silence silence_;
  Tokenizer tokens_;
  std::vector<FieldPlace>& fields_;
  std::vector<OpenMessage> messages_;  // innermost last
  std::optional<FieldPlace> list_;     // the open list of the innermost message, as a place for its elements
};

}  // namespace

TextOutline::TextOutline(const SourceText& source, const Descriptor& root) { Scanner(source, root, fields_).scan(); }

std::optional<Position> TextOutline::find(const std::string& path) const {
  std::optional<Position> innermost;
  int around = -1;
  for (const FieldPathPart& part : parse_field_path(path)) {
    const auto is_meant = [&](const FieldPlace& place) {
      return place.around == around && place.field != nullptr && place.field->name() == part.name &&
             (part.index < 0 || part.index == place.index);
    };
    auto at = fields_.begin() + (around + 1);  // fields come after the message around them
    while (at != fields_.end() && !is_meant(*at)) ++at;
    if (at == fields_.end()) break;
    innermost = at->place();
    around = static_cast<int>(at - fields_.begin());
  }
  return innermost;
}

const FieldPlace* TextOutline::at(Position position) const {
  const FieldPlace* innermost = nullptr;
  for (const FieldPlace& place : fields_) {
    if (place.name > position) break;
    const bool is_within = position >= place.place() && position <= (place.is_message ? place.value : place.last);
    if (is_within || (place.is_in_list && position == place.list)) innermost = &place;
  }
  return innermost;
}

}  // namespace arbalest::jobs
