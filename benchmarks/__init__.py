"""Speed, memory and start-up of `rig`, measured and printed; nothing is asserted."""
