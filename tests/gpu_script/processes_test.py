"""`arbalest train` in several processes with GPUs, on the stand-in for CUDA's libraries: the bytes of one process, and how
the others end when a process dies."""

import os
import pathlib
import random
import signal

import kill_runs
import processes
from process_case import PROGRAM, ProcessCase, main

JOB = """
model {
  layers { name: "conv" input: "image" conv { filters: 2 kernel: 3 stride: 2 } }
  layers { name: "norm" input: "conv" batch_norm {} }
  layers { name: "relu" input: "norm" relu {} }
  layers { name: "logits" input: "relu" dense { units: 10 } }
  layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} }
  layers { name: "accuracy" input: ["logits", "label"] accuracy {} }
}
data { npy { directory: "./images" classes: 10 channels: 1 height: 8 width: 8 } }
training { batch_size: 4 max_epochs: 2 moving_average_epochs: 0.3 batch_norm_examples: 32 kernels: FIXED }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 }
synchronization { sma {} switch { at_epoch: 1 s_sgd {} } }
checkpoint { every_batches: 20 }
"""
ROWS = 128


class TrainOnGpus(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kill_runs.write_images(cls.root / "images", 8, 1, ROWS, random.Random(1))
        cls.write_job(JOB)

    def launch(self, count, output, *arguments, gpus=2, learners=2, visible=None, options=(), program=PROGRAM,
               **variables):
        """Starts mpirun. `visible`: the GPUs that each rank sees; None: all of them."""
        words = ["job.txtpb", "--quiet", "--output", output, "--set", f"learners.per_device.fixed={learners}", *arguments]
        own = {"ARBALEST_STAND_IN_GPUS": gpus, **variables}
        by_rank = {
            rank: {**own, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible[rank]})} for rank in range(count)
        }
        return processes.launch(program, count, words, self.root, by_rank, options=options)

    def train(self, count, output, *arguments, **others):
        code, errors = processes.end(self.launch(count, output, *arguments, **others))
        self.assertNotIn("stand-in:", errors)
        return code, errors

    def outcome(self, output):
        summary = self.summary(output)
        names = ("model_sha256", "test_loss", "test_accuracy", "mini_batches", "examples", "learners")
        return [summary[name] for name in names]

    def trains(self, count, output, *arguments, **others):
        """The outcome of a run that ends well."""
        code, errors = self.train(count, output, *arguments, **others)
        self.assertEqual(code, 0, errors)
        return self.outcome(output)

    def test_the_bytes_are_those_of_one_process(self):
        alone = self.trains(1, "one-two")
        self.assertEqual(self.trains(2, "two-one"), alone)
        # The launcher gives each process a GPU, which each of them calls cuda:0.
        self.assertEqual(self.trains(2, "two-given", visible=["0", "1"]), alone)
        alone = self.trains(1, "one-three", gpus=3, learners=1)
        self.assertEqual(self.trains(2, "two-unequal", gpus=3, learners=1, visible=["0,1", "2"]), alone)

    def test_a_run_goes_on_in_another_number_of_processes(self):
        longer = ["--set", "training.max_epochs=3"]
        whole = self.trains(1, "whole", *longer)
        self.trains(2, "parts", "--set", "training.max_epochs=2")
        self.assertEqual(self.trains(1, "parts", *longer, "--resume=auto"), whole)

    def test_all_processes_take_the_kernels_that_rank_0_has_timed(self):
        timed = ["--set", "training.kernels=TIMED"]
        alone = self.trains(1, "timed-one", *timed)
        self.assertEqual(self.trains(2, "timed-two", *timed), alone)
        kernels = [(self.root / output / "kernels.txtpb").read_text(encoding="ascii") for output in ("timed-one", "timed-two")]
        self.assertIn("microseconds", kernels[0])
        self.assertEqual(*kernels)

    def test_a_process_that_is_killed_ends_the_others_with_exit_code_8(self):
        wrapper = self.root / "wrapper"  # keeps the exit codes of all ranks, of which mpirun tells one
        wrapper.write_text(f'#!/bin/sh\n{PROGRAM} "$@"\ncode=$?\necho $code >code.$OMPI_COMM_WORLD_RANK\nexit $code\n')
        wrapper.chmod(0o755)
        for hangs in ({}, {"ARBALEST_STAND_IN_HANGS_IN_ABORT": 1}):  # as ncclCommAbort may
            output = f"killed-{len(hangs)}"
            long = ["--set", "training.max_epochs=100000", "--set", "processes.peer_timeout_seconds=3"]
            # mpirun lets the others go on.
            process = self.launch(3, output, *long, gpus=3, options=["--enable-recovery"], program=wrapper, **hangs)
            self.wait_for(process, output, "epoch")
            shell = processes.ranks_of(process)[2]
            child = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text(encoding="ascii").split()[0]
            os.kill(int(child), signal.SIGKILL)
            _, errors = processes.end(process)
            for rank in (0, 1):
                self.assertRegex(errors, rf"error: (rank {rank} on host .*: )?rank 2 on host .* is dead")
            codes = {path.name: path.read_text(encoding="ascii").strip() for path in self.root.glob("code.*")}
            self.assertEqual(codes.pop("code.2"), "137", errors)
            self.assertEqual(set(codes.values()), {"8"}, errors)

    def test_a_process_that_is_stopped_is_named(self):
        long = ["--set", "training.max_epochs=100000", "--set", "processes.peer_timeout_seconds=3"]
        process = self.launch(2, "stopped", *long)
        self.wait_for(process, "stopped", "epoch")
        os.kill(processes.ranks_of(process)[1], signal.SIGSTOP)
        code, errors = processes.end(process)
        self.assertEqual(code, 8, errors)
        self.assertRegex(errors, r"rank 1 on host .* is dead, stopped or cut off")

    def test_wrong_devices_are_told_once(self):
        code, errors = self.train(2, "refused", gpus=1)
        self.assertEqual(code, 3, errors)
        self.assertEqual(errors.count("cannot share the device of the job (cuda:0) equally"), 1, errors)
        code, errors = self.train(2, "refused", "--set", 'devices=["cuda:1"]', visible=["0,1", "2"], gpus=3)
        self.assertEqual(code, 2, errors)
        self.assertEqual(errors.count("device 'cuda:1': this machine has 1 GPU"), 1, errors)


if __name__ == "__main__":
    main()
