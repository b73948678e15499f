"""The words of the bench: clocks as types, frozen records, the seams. No input or output."""
