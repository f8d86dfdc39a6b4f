#!/usr/bin/env bash
# JAX 0.10.2 on a CPU: the gradient of a bias in bfloat16 is added up in bfloat16, and ends at 256 where it should be
# 18,432. jax.numpy.sum of the same numbers in the same type gives 18,432.
#
# jax.numpy.sum adds up in float32 and rounds once. The gradient of a broadcast is lax.reduce_sum, which does not, and
# XLA's CPU code then rounds after every addition: 256 + 1 is 256 in bfloat16. The bias of a convolution gets one number
# for each example and pixel. Where most of them have one sign, the sum stops growing, and nothing warns. The gradients
# of the weights are right, as a convolution and a product of matrices add up in float32.
#
# A bias in float32 that is added to an output in bfloat16, (x + bias).astype(x.dtype), has the right gradient.
#
# The program adds a bias to the output of LeNet's first convolution for a mini-batch of 32. The gradient of each number
# of the output is 1. Seen:
#   jax.numpy.sum 18432
#   gradient of a bias in bfloat16 256
#   gradient of a bias in float32 18432
#
# Exit codes: 0 this is what happens, 1 it is not, or the packages cannot be installed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jax==0.10.2 numpy==2.4.6
cat > "$folder/bias.py" <<'PYTHON'
import jax
import jax.numpy as jnp

output = jnp.zeros((32, 24, 24, 20), jnp.bfloat16)  # [examples, rows, columns, filters]
ones = jnp.ones_like(output)


@jax.jit
def gradient(bias):
    def with_bias(bias):
        return (output + bias).astype(jnp.bfloat16)

    return jax.vjp(with_bias, bias)[1](ones)[0]


print("jax.numpy.sum", int(ones.sum((0, 1, 2))[0]))
for kind in (jnp.bfloat16, jnp.float32):
    print("gradient of a bias in", kind.__name__, int(gradient(jnp.zeros(20, kind))[0]))
PYTHON
JAX_PLATFORMS=cpu NPROC=1 "$folder/venv/bin/python" "$folder/bias.py" 2> "$folder/log" | tee "$folder/seen" ||
  { cat "$folder/log" >&2; exit 1; }
diff "$folder/seen" - <<'SEEN'
jax.numpy.sum 18432
gradient of a bias in bfloat16 256
gradient of a bias in float32 18432
SEEN
