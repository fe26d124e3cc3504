"""What pages say: of runs, ladders, models, adaptation."""
