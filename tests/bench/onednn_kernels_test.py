"""Tests what is read of oneDNN's kernels: bench/peers/onednn_kernels.py."""

import os
import unittest

from peers.onednn_kernels import is_reference, kernels_in, reference_shares, said_to_stdout, told

# As oneDNN 3 and oneDNN 2 print it, shortened.
SAID = """onednn_verbose,v1,info,oneDNN v3.13.3 (commit 0)
onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,prop_kind,exec_time
onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,src:f32,,mb32,2.0
onednn_verbose,v1,primitive,exec,cpu,convolution,ref:any,backward_weights,src:bf16,,mb32,6.0
onednn_verbose,exec,cpu,matmul,gemm:ref,undef,src:f32,,32x10,1.5
onednn_verbose,v1,primitive,exec,cpu,reorder,ref:any,undef,src:f32,,4,0.05
onednn_verbose,v1,primitive,exec,cpu,pooling,jit_bf16:avx512_core_bf16,forward_training,src:bf16,,mb32,0.45
another line, exec
"""


class Kernels(unittest.TestCase):
    def test_lines_of_both_versions_are_read(self):
        ran = kernels_in(SAID)
        self.assertEqual(len(ran), 5)
        self.assertEqual(ran[1], ("convolution", "ref:any", "backward_weights", 6.0))
        self.assertEqual(ran[2], ("matmul", "gemm:ref", "undef", 1.5))

    def test_reference_kernels_have_a_share_unless_it_is_tiny(self):
        shares = reference_shares(SAID)
        self.assertEqual(list(shares), ["convolution backward_weights", "matmul"])
        self.assertAlmostEqual(shares["convolution backward_weights"], 0.6)
        self.assertEqual(told(shares), "convolution backward_weights (60 %), matmul (15 %)")
        self.assertEqual((told({}), told(None)), ("-", "-"))
        self.assertEqual(reference_shares(""), {})
        self.assertFalse(is_reference("brg_conv_fwd:avx512_core"))

    def test_what_libraries_write_to_stdout_is_collected_and_stdout_comes_back(self):
        before = os.fstat(1).st_ino
        with said_to_stdout() as said:
            os.write(1, b"from a library\n")
        self.assertEqual(said(), "from a library\n")
        self.assertEqual(os.fstat(1).st_ino, before)


if __name__ == "__main__":
    unittest.main()
