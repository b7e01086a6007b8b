"""What a study survives: the long forms of what goes wrong elsewhere, kill -9 at random, and how fast it is kept."""
