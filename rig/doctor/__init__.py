"""What would go wrong with a measurement here, found beforehand: findings, each ok, warn or fail with a remedy."""
