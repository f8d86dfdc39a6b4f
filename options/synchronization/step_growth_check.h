// Refuses jobs whose steps grow with the number of learners in two ways at once: learning_rate.with_learners multiplies
// the learning rate of each learner, and the scheme lets learners take whole steps, or many of them alone, or
// multiplies what they have moved. With momentum such steps diverge.
//
// The rule of linear scaling (Goyal et al., 2017) is that the steps of k learners together may be k times those of one.
// Beyond it:
//   async_sgd, hogwild   each mini-batch is a whole step, so k learners already move the weights k times as far.
//                        Gradients that miss tau steps leave stable only about (1 - momentum) / tau of the step, where
//                        2 (1 + momentum) is stable without delay, so nothing is left to multiply. A push of async_sgd
//                        that sums several gradients multiplies, too.
//   rounds of 10 steps   and more, and swap: between two averagings a learner trains alone, and at several times the
//                        learning rate of one learner it diverges before it is averaged.
//   outer momentum       multiplies by rate / (1 - momentum). With with_learners that may be twice k and more.
// bench/results/2026-11-28-scheme-defaults.md has the runs behind these bounds.
#pragma once

#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Adds an issue for each phase beyond these bounds, with the setting that trains. Only for models whose steps are not
// bounded otherwise: with momentum of at least 0.8 (sgd, rmsprop), several layers with weights, and no batch norm. A
// model of a single layer may not push sums of gradients either. All other options must have been read.
void check_step_growth(const JobOptions& options, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
