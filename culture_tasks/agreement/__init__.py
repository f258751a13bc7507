"""Whether a judge agrees with people, or with another judge: loading, grading, comparing, reporting."""
