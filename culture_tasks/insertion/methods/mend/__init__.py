"""MEND: edits by transformed gradients (Mitchell et al., 2022), as CrossCult-KIBench's paper uses it."""

from culture_tasks.insertion.methods.mend.method import MendMethod

METHOD = MendMethod
