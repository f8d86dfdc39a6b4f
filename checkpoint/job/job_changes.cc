#include "checkpoint/job/job_changes.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include "arbalest/v1/job.pb.h"
#include "checkpoint/job/continuation.h"
#include "checkpoint/job/saved_job.h"
#include "engine/base/error.h"
#include "options/loading/load_job.h"

namespace arbalest::jobs {

namespace {

using google::protobuf::util::MessageDifferencer;

// Collects the fields that differ, as "optimizer.sgd.momentum is 0.9 in the checkpoint and 0.8 in the job".
class Differences final : public MessageDifferencer::Reporter {
 public:
  const std::vector<std::string>& all() const noexcept { return all_; }

  void ReportAdded(const google::protobuf::Message&, const google::protobuf::Message& now,
                   const std::vector<MessageDifferencer::SpecificField>& path) override {
    all_.push_back(fmt::format("{}: none in the checkpoint, {} in the job", name(path, true), value(now, path, true)));
  }
  void ReportDeleted(const google::protobuf::Message& before, const google::protobuf::Message&,
                     const std::vector<MessageDifferencer::SpecificField>& path) override {
    all_.push_back(
        fmt::format("{}: {} in the checkpoint, none in the job", name(path, false), value(before, path, false)));
  }
  void ReportModified(const google::protobuf::Message& before, const google::protobuf::Message& now,
                      const std::vector<MessageDifferencer::SpecificField>& path) override {
    const bool is_told_by_its_fields = path.back().field != nullptr && path.back().field->message_type() != nullptr;
    if (is_told_by_its_fields) return;
    all_.push_back(fmt::format("{}: {} in the checkpoint, {} in the job", name(path, true), value(before, path, false),
                               value(now, path, true)));
  }

 private:
  static std::string name(const std::vector<MessageDifferencer::SpecificField>& path, bool is_new) {
    std::string text;
    for (const auto& part : path) {
      if (part.field == nullptr) continue;
      text += (text.empty() ? "" : ".") + std::string(part.field->name());
      const int index = is_new && part.new_index >= 0 ? part.new_index : part.index;
      if (part.field->is_repeated()) text += fmt::format("[{}]", index);
    }
    return text;
  }

  // The value of the last field of the path; `message` holds that field.
  static std::string value(const google::protobuf::Message& message,
                           const std::vector<MessageDifferencer::SpecificField>& path, bool is_new) {
    const auto& last = path.back();
    if (last.field == nullptr) return "another value";
    const int index = is_new && last.new_index >= 0 ? last.new_index : last.index;
    std::string text;
    google::protobuf::TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    printer.PrintFieldValueToString(message, last.field, last.field->is_repeated() ? index : -1, &text);
    return last.field->message_type() != nullptr ? "{ " + text + "}" : text;
  }

  std::vector<std::string> all_;
};

// Removes what is done about images that cannot be read, of which older programs wrote no max_skipped.
void forget_skips(v1::Data& data) {
  const auto forget = [](auto& decoding) {
    decoding.clear_on_unreadable();
    decoding.clear_max_skipped();
  };
  if (data.has_images()) forget(*data.mutable_images()->mutable_decoding());
  if (data.has_tfrecord()) forget(*data.mutable_tfrecord()->mutable_decoding());
}

// A job of a version without these fields had no choice; the run keeps that version's rules (SavedRun::pixels).
template <typename Source>
void clear_unknown_pixel_rules(const Source& saved, Source& now) {
  if (!saved.has_orientation()) now.clear_orientation();
  if (!saved.decoding().has_reduced()) now.mutable_decoding()->clear_reduced();
}

void clear_unknown_pixel_rules(const v1::Data& saved, v1::Data& now) {
  if (saved.has_images() && now.has_images()) clear_unknown_pixel_rules(saved.images(), *now.mutable_images());
  if (saved.has_tfrecord() && now.has_tfrecord()) clear_unknown_pixel_rules(saved.tfrecord(), *now.mutable_tfrecord());
}

// Removes the restarts that are still to come after `epoch`.
void clear_later_restarts(v1::LearningRate& rate, double epoch) {
  while (!rate.restart().empty() && rate.restart().rbegin()->epoch() >= epoch) rate.mutable_restart()->RemoveLast();
}

// The text of the job that is to go on, as it is read with `settings`.
std::string continued_text(const JobOptions& job, const std::vector<std::string>& settings) {
  if (settings.empty()) return job.resolved_text;
  return parse_job(SourceText(job.name, job.resolved_text), settings).resolved_text;
}

}  // namespace

void check_same_job(const std::string& saved_text, const RunState& state, const JobOptions& job,
                    const std::vector<std::string>& settings) {
  v1::Job saved = parse_saved_job(saved_text);
  v1::Job now = parse_saved_job(continued_text(job, settings));
  for (v1::Job* each : {&saved, &now}) {
    each->clear_name();  // it follows from the name of the job file
    each->clear_learners();
    each->clear_devices();
    each->clear_device_memory_mib();
    for (auto& layer : *each->mutable_model()->mutable_layers()) {
      if (layer.has_dense()) layer.mutable_dense()->clear_split();  // checkpoints hold whole layers
    }
    for (auto& change : *each->mutable_synchronization()->mutable_switch_()) change.clear_learners();
    each->clear_checkpoint();
    each->mutable_data()->clear_class_names();
    forget_skips(*each->mutable_data());
    each->clear_processes();
    each->clear_initialize();  // a resumed run does not read these weights again
    clear_later_restarts(*each->mutable_learning_rate(), most_epochs_trained(state));
    each->mutable_training()->clear_kernels();
    each->mutable_training()->clear_max_epochs();
    each->mutable_training()->clear_target_accuracy();
    each->mutable_training()->clear_patience_epochs();
    each->mutable_training()->clear_min_improvement();
    each->mutable_training()->clear_max_minutes();
    each->mutable_training()->clear_on_divergence();
    each->mutable_training()->clear_rollback_factor();
    each->mutable_training()->clear_spike_factor();
    each->mutable_synchronization()->clear_compare_rounds();
  }
  clear_unknown_pixel_rules(saved.data(), *now.mutable_data());
  Differences differences;
  MessageDifferencer differencer;
  differencer.ReportDifferencesTo(&differences);
  if (differencer.Compare(saved, now)) return;
  engine::fail(engine::ErrorKind::kCheckpoint,
               "the job has changed since the checkpoint was saved:\n  {}\nset these fields back by --set, or start a "
               "new run with another --output; a field whose default follows from training.max_epochs, such as "
               "learning_rate.cosine.epochs, keeps its value if the job leaves it out",
               fmt::join(differences.all(), "\n  "));
}

std::optional<double> target_of(const std::string& saved_text) {
  const v1::Job job = parse_saved_job(saved_text);
  return job.training().has_target_accuracy() ? std::optional(job.training().target_accuracy()) : std::nullopt;
}

bool asks_for_other_learners(const std::string& saved_text, const JobOptions& job) {
  const v1::Job saved = parse_saved_job(saved_text);
  const v1::Job now = parse_saved_job(job.resolved_text);
  if (saved.devices_size() != now.devices_size()) return true;
  for (int i = 0; i < saved.devices_size(); ++i) {
    if (saved.devices(i) != now.devices(i)) return true;
  }
  return !MessageDifferencer::Equals(saved.learners(), now.learners());
}

}  // namespace arbalest::jobs
