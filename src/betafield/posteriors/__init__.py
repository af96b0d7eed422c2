"""What is then believed: distributions of the success probability, one a row."""
