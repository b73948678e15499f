"""`python -m benchmarks findings`: real systems on the virtual bench, and what they claim beside what is true."""
