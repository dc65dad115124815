"""`python -m gradsmith.lab.triton.first MODULE ARGUMENTS`: run a module in a process that interprets kernels.

Importing the module itself may import triton (torch's flop counter does), and then it is too late to say so.
"""

from __future__ import annotations

import runpy
import sys

from gradsmith.lab.triton.importing import interpret

if __name__ == "__main__":
    interpret()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
