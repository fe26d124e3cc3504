"""What a player makes of the others: one file for each way, and the table of them."""
