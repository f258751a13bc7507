"""Preference data for training: pairs of rated responses, in the form that TRL reads, with a manifest."""
