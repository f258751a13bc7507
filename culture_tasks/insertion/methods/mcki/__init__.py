"""Memory-Conditioned Knowledge Insertion, the method of CrossCult-KIBench's paper (section 4, Appendix D)."""

from culture_tasks.insertion.methods.mcki.method import MckiMethod

METHOD = MckiMethod
