"""Knowledge insertion for multimodal models: methods behind one interface, over one adapter.

A method is given insertion samples (image, question, answer) one after another and answers requests in between. See
:mod:`~culture_tasks.insertion.insertion_method` for what a method does,
:mod:`~culture_tasks.insertion.adapter` for what it may ask of a model, and
:mod:`~culture_tasks.insertion.method_registry` for how to add one.
"""
