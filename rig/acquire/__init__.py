"""The only package that touches wires and sound cards."""
