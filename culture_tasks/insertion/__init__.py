"""Knowledge insertion for multimodal models: methods behind one interface, over one adapter.

A method is given insertion samples (image, question, answer) one after another and answers requests in between. See
:mod:`~culture_tasks.insertion.insertion_method` for the interface of methods,
:mod:`~culture_tasks.insertion.adapter` for the model that they work with, and
:mod:`~culture_tasks.insertion.method_registry` for how to add one.
"""
