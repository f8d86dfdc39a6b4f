"""Tests tests/cuda/kernel_facts.py: reading cuobjdump's output, and computing the occupancy."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import kernel_facts  # noqa: E402

NAME = "_ZN8arbalest6engine4cuda43_GLOBAL__N__a7ab87c6_10_convert_cu_bea8c5f74moveEPf"
RESOURCES = f"""arch = sm_80
 Function {NAME}:
  REG:42 STACK:16 SHARED:2048 LOCAL:8 CONSTANT[0]:376
arch = sm_90
 Function {NAME}:
  REG:40 STACK:0 SHARED:3072 LOCAL:0 CONSTANT[0]:552
"""
MACHINE_CODE = f"""arch = sm_90
\t\tFunction : {NAME}
        /*0030*/                   LDG.E R2, desc[UR6][R2.64] ;
        /*0040*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR6][R2.64] ;
        /*0050*/                   LDG.E.U16 R5, desc[UR6][R2.64+0x10] ;
        /*0060*/                   LDS.128 R8, [R3] ;
        /*0070*/                   STG.E.64.STRONG.SYS desc[UR6][R18.64], R16 ;
"""


class KernelFactsTest(unittest.TestCase):
    def test_resources_are_read_by_processor(self):
        # For sm_90, cuobjdump adds CUDA's reserved 1,024 bytes to the shared memory.
        self.assertEqual(kernel_facts.parse_resources(RESOURCES),
                         {("sm_80", NAME): (42, 2048, 24), ("sm_90", NAME): (40, 2048, 0)})

    def test_accesses_of_global_memory_are_counted_by_bytes(self):
        counts = kernel_facts.parse_accesses(MACHINE_CODE.splitlines())["sm_90", NAME]
        self.assertEqual(counts, {("loads", 4): 1, ("loads", 16): 1, ("loads", 2): 1, ("stores", 8): 1})

    def test_inner_loops_are_found(self):
        code = f"""arch = sm_90
\t\tFunction : {NAME}
        /*0010*/                   FFMA R1, R2, R3, R1 ;
        /*0020*/                   FFMA R1, R2, R3, R1 ;
        /*0030*/                   IADD3 R4, R4, 0x1, RZ ;
        /*0040*/              @!P0 BRA 0x20 ;
        /*0050*/               @P1 BRA 0x10 ;
        /*0060*/                   FFMA R1, R2, R3, R1 ;
        /*0070*/              @!P0 BRA P2, 0x60 ;
        /*0080*/                   IADD3 R4, R4, 0x1, RZ ;
        /*0090*/                   BRA 0x80;
"""
        self.assertEqual(kernel_facts.parse_loops(code.splitlines()), {("sm_90", NAME): [(1, 3), (1, 2)]})

    def test_names_lose_what_changes_from_build_to_build(self):
        demangled = "void arbalest::engine::cuda::(anonymous namespace)::step<arbalest::engine::elementwise::Adam>(float*)"
        self.assertEqual(kernel_facts.plain_name(NAME, demangled), "convert: step<Adam>")

    def test_occupancy_by_hand(self):
        # 64 registers x 32 lanes = 2,048 per warp: 32 of 64 warps, in four blocks of eight warps.
        self.assertEqual(kernel_facts.occupancy("sm_90", 64, 0, 256), (4, 0.5))
        # 41 registers take 1,536 per warp (a multiple of 256): 42 warps, five whole blocks.
        self.assertEqual(kernel_facts.occupancy("sm_80", 41, 0, 256), (5, 0.625))
        # 31 KiB and CUDA's reserved 1 KiB per block: 5 x 32 KiB of 164 KiB, 7 x 32 KiB of 228 KiB.
        self.assertEqual(kernel_facts.occupancy("sm_80", 16, 31 * 1024, 256), (5, 0.625))
        self.assertEqual(kernel_facts.occupancy("sm_90", 16, 31 * 1024, 256), (7, 0.875))
        # One warp per block: an SM holds 32 blocks.
        self.assertEqual(kernel_facts.occupancy("sm_90", 16, 0, 32), (32, 0.5))

    def test_only_the_processors_of_the_build_are_compared(self):
        rows = [["a", "sm_80", 16], ["a", "sm_90", 18]]
        with tempfile.TemporaryDirectory() as directory:
            table = pathlib.Path(directory) / "table.tsv"
            table.write_text(kernel_facts.to_text(rows, "13.0.88"))
            self.assertEqual(kernel_facts.compare(kernel_facts.to_text(rows[:1], "13.0.88"), str(table)), [])
            changed = kernel_facts.to_text([["a", "sm_80", 17]], "13.0.88")
            self.assertEqual(kernel_facts.compare(changed, str(table))[-2:], ["-a\tsm_80\t16", "+a\tsm_80\t17"])
            with self.assertRaises(kernel_facts.Skipped):
                kernel_facts.compare(kernel_facts.to_text(rows, "13.1.0"), str(table))

    def test_a_file_without_kernels_is_an_error(self):
        done = subprocess.run([sys.executable, "-B", kernel_facts.__file__, "/nowhere/lib.a"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: /nowhere/lib.a: there is no such file; build the target arbalest_engine first", done.stderr)


if __name__ == "__main__":
    unittest.main()
