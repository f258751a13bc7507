"""FineTune: some steps on the insertion sample's answer, the simplest baseline of CrossCult-KIBench's paper."""

from culture_tasks.insertion.methods.finetune.method import FineTuneMethod

METHOD = FineTuneMethod
