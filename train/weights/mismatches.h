// Tensors that keep a file of weights from fitting a model, and the message about them.
#pragma once

#include <string>
#include <vector>

#include "engine/base/shape.h"

namespace arbalest::jobs {

struct Mismatches {
  struct Tensor {
    std::string name;
    engine::Shape shape;
    std::string renamed = {};  // the name that initialize.rename has made of it; "": it keeps its name
  };
  struct Misshapen {
    std::string name;  // of the model's parameter
    engine::Shape in_file;
    engine::Shape in_model;
  };

  std::vector<Tensor> missing;     // parameters that the file lacks
  std::vector<Tensor> unexpected;  // tensors that are no parameter
  std::vector<Misshapen> misshapen;
  std::vector<std::string> others;  // other problems of single tensors
  std::vector<std::string> unused;  // patterns that match nothing
  // Parameters that the file has as the model needs them. The advice leaves them alone.
  std::vector<std::string> fitting;

  bool empty() const noexcept {
    return missing.empty() && unexpected.empty() && misshapen.empty() && others.empty() && unused.empty();
  }
};

// One line for each mismatch, and then what to add to the job's `initialize`. Not for empty mismatches.
std::string describe(const Mismatches& mismatches, const std::string& path);

}  // namespace arbalest::jobs
