#include "interchange/import/operators.h"

namespace arbalest::jobs {

Operator find_operator(const std::string& kind) {
  for (const OperatorTable* table :
       {&activation_operators(), &arithmetic_operators(), &dropout_operators(), &matrix_operators(),
        &normalization_operators(), &padding_operators(), &shape_operators(), &window_operators()}) {
    const auto found = table->find(kind);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

}  // namespace arbalest::jobs
