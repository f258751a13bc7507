"""Judges that run in this process."""
