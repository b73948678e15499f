"""Reference systems under test: small, and showing what they are told, so that it can be held against the truth."""
