"""Further cultures of CrossCult-KIBench: how people make their cases, and the benchmark that comes of them.

There are two ways (section 3.4 and Appendix C.2). ``partition`` adds the question and the answer of a further partition
to the published cases. ``scenarios`` makes cases of scenarios and images that the group brings, with the questions and
answers of all of their partitions. The paper's texts are a model's; here people write or rewrite all of them, and
others check them, for which the paper has no step.
"""
