"""Who sits where, and what happens then: seating, lineups, rollouts, and names of players."""
