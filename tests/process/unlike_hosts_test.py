"""Processes on processors of different kinds train one model: every scheme, every order of ranks, and resumption.

Rank 1 (or rank 0) is limited to AVX2, for whose kernels oneDNN lays weights out in blocks of 8 channels; with AVX-512
it takes blocks of 16. The models must lie as near to those of hosts of one kind as the kernels do.
"""

import json
import random
import struct
import subprocess

import kill_runs
import processes
from process_case import PROGRAM, ProcessCase, main, settings

LIMITED = {"ONEDNN_MAX_CPU_ISA": "AVX2"}

# conv1 has 8 filters, whose vector has another length in blocks of 16; conv2 has 32, which lie in another order.
CONVOLUTIONS = """
model {
  layers { name: "conv1" input: "image" conv { filters: 8 kernel: 3 padding: 1 } }
  layers { name: "relu1" input: "conv1" relu {} }
  layers { name: "conv2" input: "relu1" conv { filters: 32 kernel: 3 padding: 1 } }
  layers { name: "norm2" input: "conv2" batch_norm {} }
  layers { name: "relu2" input: "norm2" relu {} }
  layers { name: "grouped" input: "relu2" conv { filters: 32 kernel: 3 groups: 4 } }
  layers { name: "depthwise" input: "grouped" conv { filters: 32 kernel: 3 groups: 32 } }
  layers { name: "pool" input: "depthwise" max_pool { kernel: 2 } }
  layers { name: "hidden" input: "pool" dense { units: 40 } }
  layers { name: "relu3" input: "hidden" relu {} }
  layers { name: "out" input: "relu3" dense { units: 10 } }
  layers { name: "loss" input: "out" input: "label" softmax_cross_entropy {} }
}
"""

TRAINING = """
data { npy { directory: "./images16" classes: 10 channels: 3 height: 16 width: 16 } }
training { batch_size: 8 max_epochs: 1 moving_average_epochs: 0.3 }
optimizer { sgd { momentum: 0.5 } clip_gradient_norm: 2.0 }
learning_rate { base: 0.001 with_learners: KEEP }
synchronization { compare_rounds: 1 }
"""

SCHEMES = ["sma={}", "sma={period: 3}", "s_sgd={}", "ea_sgd={}", "local_sgd={period: 3}", "bmuf={period: 3}",
           "slow_mo={period: 3}", "diloco={period: 3}", "lookahead={period: 3}", "async_sgd={staleness: 0}"]
ZOO = ["lenet {}", "resnet_cifar { depth: 20 }"]


def weights_of(run):
    """The numbers of a run's model, by name."""
    data = (run / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = json.loads(data[8 : 8 + size])
    tensors.pop("__metadata__", None)
    found = {}
    for name, tensor in tensors.items():
        begin, end = (8 + size + offset for offset in tensor["data_offsets"])
        found[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return found


def why_not():
    """Why the limit makes no difference here; "" if it does."""
    done = subprocess.run([str(PROGRAM), "env", "--json"], check=True, capture_output=True, text=True)
    sets = json.loads(done.stdout)["instruction_sets_in_force"]
    return "" if any(name.startswith("avx512") for name in sets) else "this processor has no AVX-512"


class UnlikeHosts(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kill_runs.write_images(cls.root / "images16", 16, 3, 320, random.Random(1))
        cls.write_job(CONVOLUTIONS + TRAINING)
        for number, model in enumerate(ZOO):
            cls.write_job(f"model {{ zoo {{ {model} }} }}" + TRAINING, f"zoo{number}.txtpb")

    def run_of(self, output, limited, *words, job="job.txtpb", learners=1):
        """Trains in two processes, of which these ranks are limited. Returns what they wrote to stderr."""
        words = [job, "--quiet", "--output", output, *settings(learners), *words]
        variables = {rank: LIMITED for rank in limited}
        code, errors = processes.end(processes.launch(PROGRAM, 2, words, self.root, variables))
        self.assertEqual(code, 0, errors)
        return errors

    def distance(self, run, other):
        one, two = weights_of(self.root / run), weights_of(self.root / other)
        self.assertEqual(one.keys(), two.keys())
        return max(abs(a - b) for name in one for a, b in zip(one[name], two[name]))

    def check(self, name, *words, **options):
        """Compares the models of unlike ranks, in both orders, with that of like ones."""
        like = f"{name}-like"
        self.assertNotIn("other instructions", self.run_of(like, [], *words, **options))
        self.run_of(f"{name}-limited", [0, 1], *words, **options)
        allowed = max(20 * self.distance(like, f"{name}-limited"), 2e-6)
        self.assertLess(allowed, 2e-3)
        for limited in ([1], [0]):
            unlike = f"{name}-{limited[0]}"
            errors = self.run_of(unlike, limited, *words, **options)
            self.assertEqual(errors.count("computes with other instructions, GPUs or libraries than rank 0"), 1, errors)
            self.assertLess(self.distance(like, unlike), allowed)

    def test_every_scheme(self):
        for number, scheme in enumerate(SCHEMES):
            with self.subTest(scheme):
                self.check(f"scheme{number}", "--set", f"synchronization.{scheme}")

    def test_models_of_the_zoo(self):
        for number, model in enumerate(ZOO):
            with self.subTest(model):
                self.check(f"zoo{number}", job=f"zoo{number}.txtpb")

    def test_two_learners_each_and_a_switch(self):
        self.check("switch", "--set", "synchronization.s_sgd={}", "--set",
                   "synchronization.switch={at_epoch: 0.5 local_sgd{period: 2}}", learners=2)

    def test_pushes_without_a_bound_of_0(self):
        """Their order differs from run to run, so the models do, too, but much less than if numbers were exchanged."""
        scheme = ["--set", "synchronization.async_sgd={staleness: 2}", "--set", "learning_rate.base=0.00002"]
        self.run_of("pushes-like", [], *scheme)
        self.run_of("pushes", [1], *scheme)
        self.assertLess(self.distance("pushes-like", "pushes"), 1e-3)

    def test_a_precision_that_is_chosen_suits_all_hosts(self):
        for limited in ([1], [0]):
            output = f"precision{limited[0]}"
            self.run_of(output, limited, "--set", "training.precision=AUTO")
            self.assertIn("precision: FP32", (self.root / output / "job.txtpb").read_text())
            begun = json.loads((self.root / output / "metrics.jsonl").read_text().splitlines()[0])
            self.assertRegex(begun["precision_choice"], f"^AUTO took FP32: rank {limited[0]} on .* has no BF16$")

    def test_a_run_goes_on_on_other_hosts(self):
        job = ["--set", "synchronization.s_sgd={}"]
        self.run_of("whole", [], *job, "--set", "training.max_epochs=2")
        self.run_of("moved", [0, 1], *job)
        self.run_of("moved", [1], *job, "--set", "training.max_epochs=2", "--resume=auto")
        self.assertLess(self.distance("whole", "moved"), 1e-4)


if __name__ == "__main__":
    main(why_not())
