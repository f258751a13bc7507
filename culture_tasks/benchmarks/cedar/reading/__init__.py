r"""Reads which emotion a model's reply chooses: :func:`~culture_tasks.benchmarks.cedar.reading.choice.read_reply`.

From the text to the answer, each module on the one before: ``folding`` makes spellings alike, ``mentions`` finds the
words of seven languages that aren't denied, and ``choice`` decides.

What each rule buys was measured on three sets, by switching it off: 431 replies in the style of chat models
(``ordinary.jsonl``, 337 of them with a label), 881 short replies in the tables of the seven languages (717), and 1,342
replies that turn, weigh and mislead (876). With all rules on, the reader reads 334, 712 and 656 of them and none
wrongly. Each cell is the number of labels that a rule adds, and in parentheses of wrong labels that it prevents.

============================================  ==========  ===========  ===========
rule                                          ordinary    languages    misleading
============================================  ==========  ===========  ===========
JSON, ``\boxed``, answer tags                 2 (0)       0 (0)        0 (0)
``Answer: …``, a label alone, ``fits best``   20 (0)      30 (0)       50 (9)
bold and quotes                               4 (0)       1 (0)        0 (0)
the label that opens, or the only one         64 (0)      91 (0)       289 (0)
reasoning blocks cut                          5 (7)       10 (1)       0 (0)
denied labels left out                        14 (11)     32 (16)      85 (142)
questions left out                            0 (0)       1 (0)        8 (6)
sentences that weigh labels left out          0 (0)       0 (0)        -1 (9)
repeated option lists left out                0 (0)       5 (0)        0 (0)
a label taken back                            0 (0)       0 (0)        0 (3)
declined: clear forms only                    -1 (0)      -2 (0)       0 (25)
past, expected and other people's feelings    0 (0)       0 (0)        -11 (20)
two possible labels (``frames.tsv``)          0 (0)       0 (0)        0 (42)
adjectives of things (``the painful wait``)   0 (0)       0 (0)        0 (4)
the model's own next prompt cut               0 (0)       1 (0)        1 (0)
``second choice: …``                          0 (0)       1 (0)        1 (1)
set phrases (``happy to help``)               0 (1)       0 (0)        2 (4)
longer Japanese and Chinese words             0 (0)       0 (4)        5 (9)
Arabic articles, prepositions, endings        9 (2)       38 (1)       45 (6)
Swahili verb prefixes                         3 (0)       20 (0)       10 (2)
============================================  ==========  ===========  ===========

Replies that turn from one feeling to another ("she was afraid, but now she is relieved") are unread unless they name
their answer in one of the clear forms. Reading them took another 800 lines, and gained nothing on ordinary replies.
"""
