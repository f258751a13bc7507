"""Knowledge insertion for multimodal models: methods behind one interface, over one adapter.

A method is given insertion samples (image, question, answer) one after another and answers requests in between. See
:mod:`~culture_tasks.insertion.core.insertion_method` for the interface of methods,
:mod:`~culture_tasks.insertion.core.adapter` for the model that they work with, and
:mod:`~culture_tasks.insertion.core.method_registry` for how to add one.
"""
