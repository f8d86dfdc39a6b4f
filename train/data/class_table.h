// Which class has which number, folder and name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "options/job_options.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

struct ClassTable {
  std::vector<std::string> names;  // by class; empty: classes are numbers
  // The names beside the data, by class: those of folders, or of a list; empty if there are none. The job may give the
  // classes other names.
  std::vector<std::string> in_files = {};
  bool are_folders = false;

  std::size_t size() const noexcept { return names.size(); }
};

// Reads the names beside the data, and checks the job's names against them. Adds a warning about folders whose numbers
// are not the classes' numbers. Throws DataOptions::class_names_error if the job's names are those beside the data in
// another order, and ErrorKind::kData as class_names_of_files() does if the job names no classes.
ClassTable read_class_table(const DataOptions& data, const std::string& data_root, std::vector<std::string>& warnings);

// For commands that also work without the data: an empty table if there are none.
ClassTable find_class_table(const DataOptions& data, const std::string& data_root, std::vector<std::string>& warnings);

// One line: "3, as number=folder (name): 0=n014 (tench), 1=n019 (goldfish) and 1 more". "" if names are just numbers.
std::string to_line(const ClassTable& table);

// Columns of number, folder and name; at most `most` classes are shown. "" if names are just numbers.
std::string to_text(const ClassTable& table, std::size_t most);

// Compares the names beside the data, by which labels are numbered now, with those that a saved model has learned.
// Throws ErrorKind::kData if the order is another one; warns if the names are, or if the job has given them and they
// may have been wrong from the start. `model`: names the model in messages.
void check_class_order(const DataOptions& data, const std::string& data_root, const ModelDescription& description,
                       const std::string& model, std::vector<std::string>& warnings);

}  // namespace arbalest::jobs
