"""Linking machine code next to large mappings."""

import subprocess
import sys

import pytest

CODE = """
import mmap
from luxgrad.jit.codegen import host

CODE = '''
@c = private constant <16 x float> splat (float 1.5), align 64
declare double @fmod(double, double)
define double @kernel(ptr %p, double %x) {
  %v = load <16 x float>, ptr @c
  store <16 x float> %v, ptr %p, align 4
  %y = call double @fmod(double %x, double 2.5)
  ret double %y
}
'''
import ctypes

code, kept = host.to_object(CODE), []
for k in range(60):
    kept.append((host.link(code, ("kernel",), f"k{k}"), mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | 0x4020)))
for module, _ in kept:
    block = (ctypes.c_float * 16)()
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_double)(module.address("kernel"))
    assert call(ctypes.addressof(block), 7.0) == 2.0 and list(block) == [1.5] * 16
print("linked")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="maps address space with flags that only Linux has")
def test_kernels_link_after_large_arrays_were_mapped():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "linked\n", done.stderr[-2000:]
