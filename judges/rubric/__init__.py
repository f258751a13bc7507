"""What a judge is asked and how its reply is read."""
