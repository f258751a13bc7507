"""One run beside another: two models, before and after, the gate."""
